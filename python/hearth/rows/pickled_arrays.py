"""Converts pickled rows of numbers to arrays without creating Python objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from hearth.rows import pickles


class PickledArrays:
    """Unpickled rows: an array per field if the rows were tuples, else one array. Not
    thread-safe."""

    __slots__ = ("arrays", "tuples")

    def __init__(self, arrays: tuple[np.ndarray, ...], tuples: bool):
        self.arrays = arrays
        self.tuples = tuples

    def __len__(self) -> int:
        return len(self.arrays[0])

    def slice(self, at: int, count: int) -> PickledArrays:
        """Up to `count` rows from `at` on, without copying."""
        return PickledArrays(tuple(a[at : at + count] for a in self.arrays), self.tuples)

    def like(self, other: Any) -> bool:
        """Whether `other` has rows of the same kind, so that both fit into one minibatch."""
        return (
            isinstance(other, PickledArrays)
            and self.tuples == other.tuples
            and [a.shape[1:] for a in self.arrays] == [a.shape[1:] for a in other.arrays]
            and [a.dtype for a in self.arrays] == [a.dtype for a in other.arrays]
        )

    def rows(self) -> list[Any]:
        """The original rows as Python objects."""
        lists = [a.tolist() for a in self.arrays]
        return list(zip(*lists, strict=True)) if self.tuples else lists[0]


def load(data: Any) -> PickledArrays | None:
    """The rows of a pickled list; None unless all rows are numbers of one shape and type."""
    from hearth.native._core import load_columns

    found = load_columns(data)
    return None if found is None else PickledArrays(tuple(found[1]), found[0])


def load_batch(batch: Any) -> PickledArrays | None:
    """The rows of all pickles in a batch; None if their kinds differ, or a pickle is incomplete."""
    pieces, lasts = pickles.pieces_of(batch)
    if not all(lasts):
        return None
    parts = []
    for piece in pieces:
        part = load(piece)
        if part is None or (parts and not parts[0].like(part)):
            return None
        parts.append(part)
    return PickledArrays(join(parts), parts[0].tuples) if parts else None


def join(chunks: list[PickledArrays]) -> tuple[np.ndarray, ...]:
    """Joins the arrays of several chunks of the same kind."""
    if len(chunks) == 1:
        return chunks[0].arrays
    return tuple(np.concatenate(parts) for parts in zip(*(c.arrays for c in chunks), strict=True))
