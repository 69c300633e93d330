"""Injects faults into running trainings, and verifies that each fault took effect."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from conftest import marked_processes
from waiting import wait_until

Event = dict[str, Any]


def trainers() -> list[int]:
    """Ids of the trainer processes of this session."""
    return marked_processes("--control-fd")


def parent_of(pid: int) -> int:
    """The parent's id; 0 if the process has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie; a stopped process counts as alive."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def processes_with(mark: str) -> list[str]:
    """Command lines of the processes that inherited `mark` in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return [line for line in found if line]  # a zombie's command line is empty


def check_nothing_left(mark: str, folder: Path, shared: set[str]) -> None:
    """Checks that soon no process has the mark, and no temporary file or shared memory is left.

    `folder`: where temporary files go. `shared`: what /dev/shm contained before the test.
    """
    # This takes a few seconds on an idle machine.
    wait_until(lambda: not processes_with(mark) and not list(folder.glob("hearth*")), 30)
    assert processes_with(mark) == [], processes_with(mark)
    assert list(folder.rglob("*hearth*")) == []
    assert wait_until(lambda: not unused_shared_memory() - shared, 30), os.listdir("/dev/shm")


def unused_shared_memory() -> set[str]:
    """Files in /dev/shm that no process has mapped; those that parallel tests use are mapped."""
    names, mapped = set(os.listdir("/dev/shm")), ""
    for entry in Path("/proc").iterdir() if names else ():
        with suppress(OSError):
            mapped += (entry / "maps").read_text() if entry.name.isdigit() else ""
    return {name for name in names if f"/dev/shm/{name}\n" not in mapped}


def victim(kind: str, trainer: int) -> int:
    """Id of the process to kill: the trainer, its Python worker, or the worker's executor."""
    if kind in ("trainer", "frozen trainer"):
        return trainer
    worker = parent_of(trainer)
    return worker if kind == "worker" else parent_of(parent_of(worker))


KINDS = ("trainer", "worker", "executor", "frozen trainer")


class FaultInjector:
    """An `on_event` that injects one fault when a training reaches an iteration; records events.

    `landed` is set only if the victim was alive before and is gone (or stopped) afterwards.
    `spared` trainers are not killed; by default those that already run, for example for earlier
    tests' predictions.
    """

    def __init__(
        self, kind: str, iteration: int, index: int = 0, spared: frozenset[int] | None = None
    ):
        self.kind, self.iteration, self.index = kind, iteration, index
        self.spared = frozenset(trainers()) if spared is None else spared
        self.events: list[tuple[float, Event]] = []
        self.injected_at: float | None = None
        self.landed = False
        self.others_ended_s = float("nan")  # from the fault to the end of the other ranks' trainers
        self._observer: threading.Thread | None = None

    def __call__(self, event: Event) -> None:
        self.events.append((time.monotonic(), event))
        due = event.get("event") == "progress" and event["iteration"] >= self.iteration
        if due and self.injected_at is None:
            self.inject()

    def ranks(self) -> list[int]:
        """Process ids of the trainers that may be killed."""
        return sorted(set(trainers()) - self.spared)

    def inject(self) -> None:
        found = self.ranks()
        if len(found) <= self.index:
            return  # a late event: trainers have already ended
        trainer = found.pop(self.index)
        pid = victim(self.kind, trainer)
        self.injected_at = time.monotonic()
        # In a separate thread: the other trainers end only if the driver's thread continues.
        self._observer = threading.Thread(target=self._observe, args=(found, self.injected_at))
        self._observer.start()
        if self.kind == "frozen trainer":
            os.kill(pid, signal.SIGSTOP)
            self.landed = wait_until(lambda: _state(pid) == "T", 30)
        else:
            assert is_alive(pid)
            os.kill(pid, signal.SIGKILL)
            self.landed = wait_until(lambda: not is_alive(pid), 30)

    def _observe(self, others: list[int], injected_at: float) -> None:
        deadline = injected_at + 30
        while any(is_alive(pid) for pid in others) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.others_ended_s = time.monotonic() - injected_at

    def seconds_of_others(self) -> float:
        """Seconds from the fault until the trainers of all other ranks had ended."""
        self._observer.join()
        return self.others_ended_s

    def of(self, kind: str) -> list[Event]:
        return [event for _, event in self.events if event.get("event") == kind]

    def seconds_to_recover(self) -> float:
        """Seconds from the fault until the first iteration after the restart."""
        restarted = next(at for at, e in self.events if e.get("event") == "restart")
        again = (at for at, e in self.events if at > restarted and e.get("event") == "progress")
        return next(again) - self.injected_at

    def timeline(self) -> str:
        """Events from the fault to the first iteration after the restart, for a test's message."""
        lines = []
        for at, event in self.events:
            if self.injected_at is None or at < self.injected_at or event.get("event") == "log":
                continue
            lines.append(f"{at - self.injected_at:6.2f} s {event}")
            if event.get("event") == "progress" and any("restart" in line for line in lines):
                break
        return "\n".join(lines)


class Quiet(FaultInjector):
    """Records events, but injects no fault."""

    def __init__(self) -> None:
        super().__init__("none", sys.maxsize)


class FullDisk(Quiet):
    """Makes the trainers' writes fail between two iterations.

    A limit on file sizes simulates a full disk: writing fails in the middle of the file.
    """

    def __init__(self, first: int, last: int):
        super().__init__()
        self.first, self.last = first, last

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if event.get("event") == "progress":
            full = self.first <= event["iteration"] < self.last
            size = 100 if full else resource.RLIM_INFINITY
            for pid in self.ranks():
                with suppress(ProcessLookupError):  # a trainer may have ended before
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def failed_snapshots(self) -> list[int]:
        texts = [event["text"] for event in self.of("log") if event["level"] == "W"]
        found = (
            re.search(r"No snapshot after iteration (\d+), .*File too large", t) for t in texts
        )
        return [int(match[1]) for match in found if match]


def _state(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]
