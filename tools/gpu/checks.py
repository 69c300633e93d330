"""Checks of Hearth on a GPU, one command each: `checks.py NAME`.

Prints `RESULT: {json}` lines; raises AssertionError if a check fails. Also runs with
HEARTH_SIMULATED_GPUS, as far as simulated GPUs support the checks.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "python" / "hearth" / "demo"
GOAL = 0.98
SIMULATED = bool(os.environ.get("HEARTH_SIMULATED_GPUS"))


def report(**values: Any) -> None:
    print("RESULT: " + json.dumps(values), flush=True)


def program(*words: str, folder: Path, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Starts the `hearth` program."""
    from hearth import native

    return subprocess.Popen(
        [*prefix, str(native.program()), *words], cwd=folder, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env={**os.environ, **native.environment()},
    )  # fmt: skip


def run(*words: str, folder: Path, prefix: tuple[str, ...] = ()) -> str:
    """Runs the program and returns its log. Raises AssertionError if it fails."""
    with program(*words, folder=folder, prefix=prefix) as running:
        log = running.stdout.read()
    assert running.returncode == 0, f"hearth {' '.join(words)}: {running.returncode}\n{log[-2000:]}"
    return log


def digits_folder() -> Path:
    """A folder with the digits as Parquet, and their net."""
    sys.path.insert(0, str(DIGITS))
    import prepare

    folder = Path(tempfile.mkdtemp(prefix="hearth-gpu-"))
    for name in ("lenet_cos_train_test.prototxt", "lenet_cos_solver.prototxt", "digits.npz"):
        shutil.copy(DIGITS / name, folder)
    prepare.write_tables(folder / "work")
    return folder


def solver(folder: Path, name: str, **settings: Any) -> str:
    """Writes the digits' solver with other settings; returns its name."""
    text = (folder / "lenet_cos_solver.prototxt").read_text()
    text = text.replace("solver_mode: CPU", "")
    for key, value in settings.items():
        text = re.sub(rf"^{key}:.*\n", "", text, flags=re.M) + f"{key}: {json.dumps(value)}\n"
    (folder / name).write_text(text)
    return name


def accuracy(log: str) -> float:
    """The last accuracy in a log."""
    return float(re.findall(r"accuracy = ([\d.]+)", log)[-1])


def bits(folder: Path, model: str) -> bytes:
    return (folder / model).read_bytes()


def facts() -> None:
    """Records the card, the driver and versions."""
    import torch

    card = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
        capture_output=True, text=True,
    ).stdout.strip() if shutil.which("nvidia-smi") else "none"  # fmt: skip
    report(
        card=card, torch=torch.__version__, cuda=torch.version.cuda, python=sys.version.split()[0],
        cores=os.cpu_count(), cudnn=torch.backends.cudnn.version(),
    )  # fmt: skip
    print(run("device_query", folder=ROOT)[-600:])


def digits() -> None:
    """`hearth train -gpu 0` learns the digits."""
    folder = digits_folder()
    start = time.perf_counter()
    log = run("train", "-solver", solver(folder, "s.prototxt", max_iter=1000), "-gpu", "0",
              folder=folder)  # fmt: skip
    assert "Use GPU 0." in log, log[:1500]
    report(accuracy=accuracy(log), seconds=round(time.perf_counter() - start, 1))
    assert accuracy(log) >= GOAL, log[-1500:]


def resume() -> None:
    """Resumes from a snapshot; the weights must equal those of an uninterrupted run."""
    folder = digits_folder()
    name = solver(folder, "s.prototxt", max_iter=200, snapshot=100, test_interval=1000,
                  snapshot_prefix="a")  # fmt: skip
    run("train", "-solver", name, "-gpu", "0", folder=folder)
    straight = bits(folder, "a_iter_200.caffemodel")
    run("train", "-solver", name, "-gpu", "0", "-snapshot", "a_iter_100.solverstate", folder=folder)
    same = bits(folder, "a_iter_200.caffemodel") == straight
    report(same_bits=same, largest=largest_difference(folder, straight, "a_iter_200.caffemodel"))
    assert same


def largest_difference(folder: Path, straight: bytes, model: str) -> float:
    """The largest difference of weights between a model's bytes and a model file."""
    import numpy as np

    from hearth.native import _caffe

    text = (folder / "lenet_cos_train_test.prototxt").read_text()
    (folder / "straight.caffemodel").write_bytes(straight)
    nets = []
    for name in ("straight.caffemodel", model):
        nets.append(_caffe.Net(text, "TEST"))
        nets[-1].copy_from(str(folder / name))
    return max(
        float(np.abs(a.data - b.data).max())
        for layer in nets[0].params
        for a, b in zip(nets[0].params[layer], nets[1].params[layer], strict=True)
    )


def kill() -> None:
    """Resumes a killed run from its last snapshot; the weights must equal an unbroken run's."""
    folder = digits_folder()
    whole = solver(folder, "w.prototxt", max_iter=600, snapshot=0, test_interval=10000,
                   snapshot_prefix="w")  # fmt: skip
    run("train", "-solver", whole, "-gpu", "0", folder=folder)
    name = solver(folder, "k.prototxt", max_iter=600, snapshot=50, display=1, test_interval=10000,
                  snapshot_prefix="k")  # fmt: skip
    with program("train", "-solver", name, "-gpu", "0", folder=folder) as running:
        for line in running.stdout:
            if re.search(r"Iteration 1[3-9]\d", line):
                running.send_signal(signal.SIGKILL)
                break
        running.stdout.read()
    states = [path.name for path in folder.glob("k_iter_*.solverstate")]
    last = max(states, key=lambda state: int(re.findall(r"\d+", state)[0]))
    run("train", "-solver", name, "-gpu", "0", "-snapshot", last, folder=folder)
    same = bits(folder, "k_iter_600.caffemodel") == bits(folder, "w_iter_600.caffemodel")
    report(resumed_from=last, same_bits=same)
    assert same


def threads() -> None:
    """Two solver threads on one GPU, which exchange gradients through the host."""
    folder = digits_folder()
    name = solver(folder, "s.prototxt", max_iter=300, test_interval=300)
    log = run("train", "-solver", name, "-gpu", "0,0", folder=folder)
    transports = re.findall(r"2 ranks exchange .*", log)
    report(accuracy=accuracy(log), transports=transports)
    assert transports and (SIMULATED or "have the same GPU" in transports[0]), log[:2000]


_NCCL_RANK = """
import os, sys, time
import torch, torch.distributed as dist
from hearth.torch import backend
backend.register("key of the check")
dist.init_process_group("cpu:hearth,cuda:nccl")
host = torch.ones(4)
dist.all_reduce(host)
print("host", host[0].item(), flush=True)
data = torch.ones(1 << 20, device="cuda")
dist.all_reduce(data)
torch.cuda.synchronize()
print("device", data[0].item(), flush=True)
dist.destroy_process_group()
"""


def nccl() -> None:
    """NCCL with the backend "hearth": one rank, and the error of two ranks on one GPU."""
    import socket

    for world in (1, 2):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", _NCCL_RANK], text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world),
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
            ) for rank in range(world)
        ]  # fmt: skip
        texts = [rank.communicate(timeout=50)[0] for rank in ranks]
        last = [text.strip().splitlines()[-1][:500] if text.strip() else "" for text in texts]
        report(world=world, status=[rank.returncode for rank in ranks], last=last)
        if world == 1 and not SIMULATED:
            assert ranks[0].returncode == 0, texts[0][-2000:]
        duplicate = any("uplicate GPU" in text for text in texts)
        print("duplicate GPU named:", duplicate)
        assert world == 1 or SIMULATED or (duplicate and all(r.returncode for r in ranks)), texts


def sanitizer() -> None:
    """Checks the memory accesses of two steps of LeNet with compute-sanitizer."""
    tool = shutil.which("compute-sanitizer")
    folder = digits_folder()
    name = solver(folder, "s.prototxt", max_iter=2, test_interval=1000)
    prefix = (tool, "--tool", "memcheck", "--error-exitcode", "9") if tool else ()
    log = run("train", "-solver", name, "-gpu", "0", folder=folder, prefix=prefix)
    report(tool=tool, summary=re.findall(r"ERROR SUMMARY:.*", log))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
