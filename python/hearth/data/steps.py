"""One step of a loader: its rows, and the batch that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Step:
    """The rows of one step: the core's, how many are no repetitions, the position behind them."""

    rows: Any
    own: int
    last: int


@dataclass(frozen=True)
class Made:
    """A batch as the program gets it, and what it counts for once it is given."""

    batch: Any
    last: int
    rows: int
    repeated: int
    invalid: int


class Repeated:
    """The reader of a rank that has no row left in an epoch: it takes its steps with others."""

    def __init__(self, reader: Any):
        self._reader = reader

    def take(self, position: int, count: int, wrap: bool) -> Any:
        """Rows to repeat; None where own ones are asked for."""
        return self._reader.take(position, count, True) if wrap else None
