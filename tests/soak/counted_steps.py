"""Records and counts the rows of each training step, over all starts of the ranks.

Each rank appends one line per step to its start's file "LIFE-RANK". A start that resumes after step
n discards all later steps that earlier starts have recorded.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from counted_net import Tally


class Recorder:
    """The lines of one rank in one start. Each line is a single write, so a process killed in it
    leaves an incomplete line, which does not count.
    """

    def __init__(self, folder: str, life: int, rank: int, begin: int):
        """`begin`: the step after which the start resumes."""
        path = Path(folder, f"{life:05d}-{rank}")
        self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND)
        self._write(begin)

    def note(self, step: int, epoch: int, ids: Iterable[Any]) -> None:
        self._write(step, epoch, [int(i) for i in ids])

    def _write(self, *values: Any) -> None:
        os.write(self._file, (json.dumps(values) + "\n").encode())


def lives(folder: Path) -> dict[int, list[list[Any]]]:
    """The lines of each start's ranks, in the order of the starts."""
    found: dict[int, list[list[Any]]] = {}
    for file in sorted(folder.glob("?????-*")):
        lines = file.read_text(encoding="utf-8").split("\n")[:-1]
        found.setdefault(int(file.name[:5]), []).extend(json.loads(line) for line in lines)
    return found


def progress(folder: Path) -> tuple[int, int, int]:
    """(number of the last start, number of its ranks that have taken a step, its last step)."""
    started = lives(folder)
    if not started:
        return -1, 0, 0
    life = max(started)
    lines = started[life]
    ranks = [file.read_bytes().count(b"\n") for file in folder.glob(f"{life:05d}-*")]
    return life, sum(count > 1 for count in ranks), max((line[0] for line in lines), default=0)


def tally(folder: Path, rows: int, epochs: int) -> Tally:
    """Counts lost and repeated rows in the epochs that the last model has learned."""
    kept: dict[int, list[list[Any]]] = {}
    for lines in lives(folder).values():
        begin = max((line[0] for line in lines if len(line) == 1), default=0)
        kept = {step: taken for step, taken in kept.items() if step <= begin}
        for step, *taken in (line for line in lines if len(line) > 1):
            kept.setdefault(step, []).append(taken)
    counted = [Counter[int]() for _ in range(epochs)]
    for taken in kept.values():
        for epoch, ids in taken:
            if epoch < epochs:
                counted[epoch].update(ids)
    lost = sum(len(set(range(rows)) - set(ids)) for ids in counted)
    doubled = sum(ids.total() - len(ids) for ids in counted)
    return Tally(epochs, lost, doubled)
