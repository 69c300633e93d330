"""The position of a loader in its dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Offset between the seeds of an epoch's passes. It is odd, so all seeds differ.
_PASS = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Pass:
    """The part of an epoch that one set of ranks read: the first `taken` rows in each rank's order.

    `owners`: the rank that owns each partition.
    """

    owners: tuple[int, ...]
    taken: int = 0


@dataclass
class Position:
    """A position: an epoch and its passes.

    Attributes:
        epoch: the number of the epoch, from 0.
        passes: one for each set of ranks that read a part of the epoch; the last one is running.
        started: whether an iteration has started at this position.
        replaced: whether the loader has a new position, so the iteration must end.
    """

    epoch: int
    passes: list[Pass]
    started: bool = field(default=False, compare=False)
    replaced: bool = field(default=False, compare=False)

    @classmethod
    def of_state(cls, state: Mapping[str, Any], owners: tuple[int, ...]) -> Position:
        """Restores the position of a state(); starts a new pass if `owners` differ from the
        state's."""
        passes = [Pass(tuple(p["owners"]), p["taken"]) for p in state["passes"]]
        if passes[-1].owners != owners:
            if all(done.taken == 0 for done in passes):
                passes.clear()
            passes.append(Pass(owners))
        return cls(state["epoch"], passes)

    @property
    def taken(self) -> int:
        """The number of rows that each rank has read in the last pass."""
        return self.passes[-1].taken

    def advance(self, taken: int) -> None:
        """Sets `taken`, the number of rows that each rank has read in the last pass."""
        self.passes[-1] = Pass(self.passes[-1].owners, taken)

    def state(self) -> dict[str, Any]:
        """A JSON-serializable state."""
        passes = [{"owners": list(p.owners), "taken": p.taken} for p in self.passes]
        return {"epoch": self.epoch, "passes": passes}


def pass_seed(seed: int, number: int) -> int:
    """The seed of an epoch's pass number `number`; pass 0 uses `seed`."""
    return (seed + number * _PASS) % (1 << 64)


def remaining(
    passes: Sequence[Pass], counts: Sequence[int], seed: int, epoch: int, mode: str
) -> list[np.ndarray]:
    """Returns a bool array for each partition that marks the rows that no rank has read.

    Args:
        passes: the epoch's finished passes.
        counts: the number of rows of each partition.
        seed, epoch, mode: determine the order in which the ranks read the rows.
    """
    from hearth.native._core import consumed_rows

    left = [np.ones(count, bool) for count in counts]
    for number, done in enumerate(passes):
        for rank in set(done.owners):
            owned = [p for p, owner in enumerate(done.owners) if owner == rank]
            mask = np.concatenate([left[p] for p in owned])
            index = np.flatnonzero(mask)
            count = min(done.taken, len(index))
            taken = consumed_rows([len(index)], pass_seed(seed, number), epoch, mode, count)
            mask[index[taken]] = False
            ends = np.cumsum([len(left[p]) for p in owned])[:-1]
            for partition, part in zip(owned, np.split(mask, ends), strict=True):
                left[partition] = part
    return left
