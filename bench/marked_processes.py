"""Finds processes by a variable inherited in their environment, also after their parent exits."""

from __future__ import annotations

import bisect
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

VARIABLE = "HEARTH_BENCH_MARK"
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def own_mark() -> str:
    """Marks all processes that this one starts from now on."""
    os.environ[VARIABLE] = f"{os.getpid()}"
    return os.environ[VARIABLE]


def find(mark: str) -> Iterator[psutil.Process]:
    """The processes started with the mark, without the one that called own_mark()."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(VARIABLE) == mark:
                yield process
        except psutil.Error:
            continue


def cpu_seconds(mark: str) -> float:
    """User and system time of all marked processes and of their ended children."""
    total = 0.0
    for process in find(mark):
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue
    return total


@dataclass(frozen=True)
class Times:
    """Processor time of a process, in seconds."""

    parent: int
    total: float  # including children that it has waited for
    children: float


class Meter:
    """Samples the processor time of the marked processes in a background thread.

    Processes that end still count: by their parent's time if it has waited for them, else by the
    last sample.
    """

    def __init__(self, mark: str, interval_s: float = 0.1):
        self._mark = f"{VARIABLE}={mark}".encode()
        self._interval_s = interval_s
        self._marked: dict[int, Times] = {}  # at the last sample
        self._others: set[int] = set()
        self._orphans = 0.0  # seconds of ended processes that no marked parent has waited for
        self._samples: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Meter:
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()

    def between(self, start: float, end: float) -> float:
        """Seconds spent between two times of time.time(), by interpolation."""
        return self._at(end) - self._at(start)

    def _at(self, when: float) -> float:
        later = bisect.bisect_left(self._samples, (when, 0.0))
        if later in (0, len(self._samples)):
            return self._samples[min(later, len(self._samples) - 1)][1]
        (t0, v0), (t1, v1) = self._samples[later - 1 : later + 1]
        return v0 + (v1 - v0) * (when - t0) / (t1 - t0)

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            self._sample()

    def _sample(self) -> None:
        now = time.time()
        pids = set(psutil.pids())
        self._others &= pids
        for pid in pids - self._others - self._marked.keys():
            environment = _environment(pid)
            if self._mark in environment:
                self._marked[pid] = Times(0, 0.0, 0.0)
            elif environment:  # empty during an exec
                self._others.add(pid)
        before = dict(self._marked)
        found = {pid: _times(pid) for pid in before}
        self._marked = {pid: times for pid, times in found.items() if times is not None}
        self._orphans += sum(self._uncounted(before))
        total = self._orphans + sum(times.total for times in self._marked.values())
        self._samples.append((now, total))

    def _uncounted(self, before: dict[int, Times]) -> Iterator[float]:
        """Seconds of ended processes whose parents have not waited for them."""
        got: dict[int, float] = {}
        for pid, times in self._marked.items():
            got[pid] = times.children - before[pid].children
        lost = {pid: times.total for pid, times in before.items() if pid not in self._marked}
        for pid in sorted(lost, reverse=True):  # children before their parents
            parent = before[pid].parent
            if parent in lost:
                lost[parent] += lost[pid]
            elif got.get(parent, -1.0) + 2 * TICK_S >= lost[pid]:
                got[parent] -= lost[pid]
            else:
                yield lost[pid]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _times(pid: int) -> Times | None:
    """The process's times; None if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    own, children = sum(map(int, fields[11:13])), sum(map(int, fields[13:15]))
    return Times(int(fields[1]), (own + children) * TICK_S, children * TICK_S)
