"""Kills processes of a training on YARN at chosen moments."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hearth import native

_LIMIT_S = 240.0
_POLL_S = 0.05
_State = TypeVar("_State")


def _processes() -> dict[int, tuple[int, list[bytes]]]:
    """{process id: (parent's id, command line)} of all processes."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
            stat = (entry / "stat").read_text()
        except OSError:
            continue
        found[int(entry.name)] = int(stat.rpartition(")")[2].split()[1]), command
    return found


def executors(application: str) -> list[int]:
    """Ids of the JVMs of the application's executors."""
    return _jvms(application, b"ExecutorBackend")


def masters(application: str) -> list[int]:
    """Id of the JVM of the application's master in cluster mode."""
    return _jvms(application, b"yarn.ApplicationMaster")


def _jvms(application: str, main: bytes) -> list[int]:
    return [
        pid
        for pid, (_, command) in _processes().items()
        if b"java" in command[0]
        and any(application.encode() in word for word in command)
        and any(word.endswith(main) or main in word for word in command)
    ]


def trainers(application: str) -> list[int]:
    """Ids of the trainers of the application's ranks."""
    processes, found = _processes(), []
    above = set(executors(application))
    program = os.path.basename(native.program()).encode()
    for pid, (parent, command) in processes.items():
        if os.path.basename(command[0]) != program:
            continue
        while parent in processes and parent not in above:
            parent = processes[parent][0]
        if parent in above:
            found.append(pid)
    return found


def kill_one(find: Callable[[str], list[int]], application: str) -> None:
    """Waits until the application has such a process, and kills the first one."""
    os.kill(reached(lambda: find(application))[0], signal.SIGKILL)


def reached(state: Callable[[], _State], limit_s: float = _LIMIT_S) -> _State:
    """Waits until the state is true and returns it; raises AssertionError after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not (found := state()):
        assert time.monotonic() < deadline, "the process to kill did not appear"
        time.sleep(_POLL_S)
    return found


class Background:
    """Runs `act` in a thread during the `with` block; re-raises its exception."""

    def __init__(self, act: Callable[[], None]):
        self._act = act
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="background", daemon=True)

    def _run(self) -> None:
        try:
            self._act()
        except BaseException as error:
            self._error = error

    def __enter__(self) -> Background:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._thread.join()
            if self._error is not None:
                raise self._error
