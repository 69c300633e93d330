"""One step of a loader: its rows, and the batch that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Step:
    """The rows of one step: the core's rows, how many are not repeated, the position after them."""

    rows: Any
    unrepeated: int
    last: int


@dataclass(frozen=True)
class PreparedBatch:
    """A batch for the program, and the counts to add once it is delivered."""

    batch: Any
    last: int
    rows: int
    repeated: int
    invalid: int


class Repeated:
    """The reader of a rank without remaining rows in an epoch: its steps repeat rows."""

    def __init__(self, reader: Any):
        self._reader = reader

    def take(self, position: int, count: int, wrap: bool) -> Any:
        """Rows to repeat; None if new rows are requested."""
        return self._reader.take(position, count, True) if wrap else None
