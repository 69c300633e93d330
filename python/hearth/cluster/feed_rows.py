"""Slices of a feed's chunks in the shape that a program wants: rows or arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from hearth.cluster.row_source import RowSource
from hearth.rows import pickled_arrays
from hearth.rows.columns import Columns
from hearth.rows.pickled_arrays import PickledArrays


class FeedSource(RowSource):
    """Rows of a node's feed."""

    def terminate(self) -> None:
        self._queue.terminate()

    def commit(self) -> None:
        self._queue.rows.commit()


def open_source(queue: Any) -> FeedSource:
    """The source of a node's feed. Raises ValueError where the cluster has none of that name."""
    if queue is None:
        raise ValueError("the cluster has no feed of that name: name it in run(queues=)")
    return FeedSource(queue)


def as_rows(chunks: list[Any]) -> list[Any]:
    """All rows in one list; a row of columns becomes a tuple."""
    rows: list[Any] = []
    for chunk in chunks:
        if not isinstance(chunk, list):
            chunk = chunk.rows()
        if rows:
            rows.extend(chunk)
        else:
            rows = chunk
    return rows


def as_arrays(chunks: list[Any], columns: list[str] | None, tensors: list[str] | None) -> Any:
    """As DataFeed.next_numpy() says; None without rows."""
    if len(chunks) > 1:
        chunks = [chunk for chunk in chunks if len(chunk)]
    if not chunks or not len(chunks[0]):
        return None
    if isinstance(chunks[0], Columns):
        names = columns or chunks[0].names
        arrays = [_join(chunks, name) for name in names]
        return dict(zip(tensors or names, arrays, strict=True))
    if isinstance(chunks[0], PickledArrays) and all(chunks[0].like(chunk) for chunk in chunks):
        arrays = pickled_arrays.join(chunks)
        if not chunks[0].tuples:  # the rows are numbers, or lists, whose items are the fields
            if tensors is None:
                return arrays[0]
            arrays = tuple(arrays[0].T)
    else:
        rows = as_rows(chunks)
        if not isinstance(rows[0], tuple) and tensors is None:
            return np.asarray(rows)
        arrays = tuple(np.asarray(values) for values in zip(*rows, strict=True))
    return dict(zip(tensors, arrays, strict=True)) if tensors is not None else arrays


def _join(chunks: list[Columns], name: str) -> np.ndarray:
    if len(chunks) == 1:
        return chunks[0].array(name)
    return np.concatenate([chunk.array(name) for chunk in chunks])
