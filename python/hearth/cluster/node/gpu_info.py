"""Queries the GPUs of this host through nvidia-smi."""

from __future__ import annotations

import random
import shutil
import subprocess
import time

from hearth.errors import HearthError, NotFoundError

AS_STRING = "string"
AS_LIST = "list"
MAX_RETRIES = 3

_RETRY_WAIT_S = 30
_QUERY_TIMEOUT_S = 60


def is_gpu_available() -> bool:
    """Whether nvidia-smi is installed and lists a GPU."""
    try:
        return bool(_list_gpus())
    except (OSError, subprocess.SubprocessError):
        return False


def get_gpus(num_gpu: int = 1, worker_index: int = -1, format: str = AS_STRING) -> str | list[str]:
    """Chooses `num_gpu` free GPUs: those without processes.

    Args:
        num_gpu: number of GPUs.
        worker_index: this process's number on the host; processes take consecutive blocks of
            `num_gpu` free GPUs, wrapping around; negative: a random choice.
        format: AS_STRING ("0,1") or AS_LIST (["0", "1"]).

    Raises:
        RuntimeError: too few are free, even after MAX_RETRIES waits of 30, 60 and 90 seconds.
    """
    free = []
    for attempt in range(MAX_RETRIES + 1):
        busy = _busy_gpus()
        free = [index for index, uuid in _list_gpus() if uuid not in busy]
        if len(free) >= num_gpu:
            break
        if attempt < MAX_RETRIES:  # polls: nothing reports that another process has released a GPU
            time.sleep(_RETRY_WAIT_S * (attempt + 1))
    else:
        raise HearthError(
            f"{num_gpu} GPUs are requested, but only {len(free)} are free on this host: {free}"
        )
    if worker_index < 0:
        chosen = random.sample(free, num_gpu)
    else:
        start = worker_index * num_gpu % len(free)
        chosen = (free + free)[start : start + num_gpu]
    return ",".join(chosen) if format == AS_STRING else chosen


def _query(what: str) -> list[list[str]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        raise NotFoundError("GPUs cannot be listed: nvidia-smi is not in PATH")
    command = [program, what, "--format=csv,noheader,nounits"]
    text = subprocess.check_output(command, text=True, timeout=_QUERY_TIMEOUT_S)
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line]


def _list_gpus() -> list[list[str]]:
    """[index, uuid] of every GPU."""
    return _query("--query-gpu=index,uuid")


def _busy_gpus() -> set[str]:
    return {row[0] for row in _query("--query-compute-apps=gpu_uuid") if row}
