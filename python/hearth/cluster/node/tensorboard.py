"""Finds TensorBoard, and starts and stops it with a node."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Literal

from hearth.errors import NotFoundError


class Board:
    """A running TensorBoard."""

    def __init__(self, process: subprocess.Popen[bytes], port: int):
        self._process = process
        self.port = port
        self.pid = process.pid

    def stop(self) -> None:
        """Kills TensorBoard and waits for its end."""
        self._process.kill()
        self._process.wait()


def start(log_dir: str | None, executor_id: int) -> Board:
    """Starts TensorBoard on TENSORBOARD_PORT, or a free port.

    Args:
        log_dir: its log folder; None: the folder tensorboard_<executor_id>.

    Raises:
        FileNotFoundError: no program `tensorboard` next to python, in sys.path or in PATH.
    """
    folders = [os.path.dirname(sys.executable), *sys.path, os.environ.get("PATH", "")]
    folders.append(os.environ.get("PYTHONPATH", ""))
    path = os.pathsep.join(folders)
    program = find_in_path(path, "tensorboard") or find_in_path(path, "tensorboard/main.py")
    if not program:
        raise NotFoundError(
            "tensorboard=True, but no program `tensorboard` was found beside python, in sys.path, "
            "PATH or PYTHONPATH: install it on the executors"
        )
    port = int(os.environ.get("TENSORBOARD_PORT", 0)) or _free_port()
    command = [program, f"--logdir={log_dir or f'tensorboard_{executor_id}'}", f"--port={port}"]
    if program.endswith(".py"):
        command.insert(0, sys.executable)
    return Board(subprocess.Popen(command, stdin=subprocess.DEVNULL, env=os.environ), port)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def find_in_path(path: str, file: str) -> str | Literal[False]:
    """The path of the first file named `file` in the folders that `path` lists, in the syntax of
    $PATH; False if there is none."""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, file)
        if os.path.isfile(candidate):
            return candidate
    return False
