"""Owns the processes of a Hadoop cluster and their descendants, and kills them at the end.

A separate program that HadoopCluster starts. A line of JSON on its standard input starts a process;
the reply is the process id. At the end of its input it kills every descendant, including containers
whose NodeManager is gone, and removes the cluster's folder.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LOOK_S = 0.2
_libc = ctypes.CDLL(None)


def main(folder: str, keep: str) -> None:
    """Serves requests until the input ends. `keep`: "1" keeps the folder."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    pending = b""
    while True:
        _reap()
        if not select.select([0], [], [], _LOOK_S)[0]:
            continue
        data = os.read(0, 1 << 16)
        if not data:
            break
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            os.write(1, f"{_start(json.loads(line))}\n".encode())
    _end_all()
    if keep != "1":
        shutil.rmtree(folder, ignore_errors=True)


def _start(order: dict[str, object]) -> int:
    """Starts `command` with `environment`; its output is appended to the file `log`."""
    with open(str(order["log"]), "ab") as log:
        return subprocess.Popen(
            order["command"],
            env=order["environment"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
        ).pid


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _end_all() -> None:
    """Kills descendants until none is left; orphans become children of this process (subreaper)."""
    while descendants := _descendants():
        for pid in descendants:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _reap()
        time.sleep(0.02)


def _descendants() -> list[int]:
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            stat = (entry / "stat").read_text(encoding="utf-8")
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found, new = set(), {os.getpid()}
    while new := {pid for pid, parent in parents.items() if parent in new} - found:
        found |= new
    return sorted(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
