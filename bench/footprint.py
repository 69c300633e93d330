"""Peak memory, and bytes written to disk, of marked processes (marked_processes.py)."""

from __future__ import annotations

import threading
from pathlib import Path

import marked_processes


class Footprint:
    """Samples the processes in a thread while the context is open.

    Attributes:
        memory: the largest sum of proportional set sizes of the processes without a JVM, in bytes.
            Pages shared by several processes count once.
        written: bytes written to disks, JVMs included; a process that ends between two samples
            counts with its last sample.
    """

    def __init__(self, mark: str, interval_s: float = 0.5):
        self._mark, self._interval_s = mark, interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._before: dict[int, int] = {}
        self._io: dict[int, int] = {}
        self.memory = 0

    def __enter__(self) -> Footprint:
        self._before = {process.pid: _written(process.pid) for process in self._processes()}
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()

    @property
    def written(self) -> int:
        return sum(size - self._before.get(pid, 0) for pid, size in self._io.items())

    def _processes(self) -> list[marked_processes.psutil.Process]:
        return list(marked_processes.find(self._mark))

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            self._sample()

    def _sample(self) -> None:
        memory = 0
        for process in self._processes():
            self._io[process.pid] = max(self._io.get(process.pid, 0), _written(process.pid))
            memory += _memory(process.pid)
        self.memory = max(self.memory, memory)


def _memory(pid: int) -> int:
    try:
        if Path(f"/proc/{pid}/comm").read_text().strip() == "java":
            return 0
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _written(pid: int) -> int:
    try:
        fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    except OSError:
        return 0
    return int(fields["write_bytes"])
