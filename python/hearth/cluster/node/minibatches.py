"""Rows in minibatches, as main functions take them from feeds of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from hearth.ranks import steps
from hearth.rows import pickled_arrays
from hearth.rows.columns import Columns, ColumnsBefore
from hearth.rows.pickled_arrays import PickledArrays

# A chunk of rows: a list of Python objects, Columns or PickledArrays.
Chunk = Any


class Source(Protocol):
    """Where the rows come from; one thread.

    Attributes:
        taken: how many rows were given.
        ended: there are no more.
    """

    @property
    def taken(self) -> int: ...

    @property
    def ended(self) -> bool: ...

    def take(self, count: int, across_partitions: bool = True, arrays: bool = False) -> list[Chunk]:
        """Waits for up to `count` rows, as slices of chunks that fit_together()."""

    def commit(self, rows: int | None = None) -> None:
        """All rows given so far are safe, or the first `rows` of them."""

    def terminate(self) -> None:
        """There are to be no more rows."""


class Minibatches:
    """The rows of a source in minibatches. One thread uses it. `mgr` is `ctx.mgr`."""

    # Set by in_step(): how many rows are in the minibatches that it has given; None: all taken.
    used: int | None = None

    def __init__(
        self,
        source: Source,
        mgr: Any = None,
        train_mode: bool = True,
        input_mapping: Mapping[str, str] | None = None,
    ):
        """`train_mode`, `input_mapping`: as DataFeed's."""
        self.mgr, self.train_mode = mgr, train_mode
        self.done_feeding = False
        self.input_tensors: list[str] | None = None
        self._columns: list[str] | None = None
        if input_mapping is not None:
            self._columns = sorted(input_mapping)
            self.input_tensors = [input_mapping[column] for column in self._columns]
        self._columns_before = ColumnsBefore()
        self._source = source

    def next_batch(self, batch_size: int) -> Any:
        """Waits for up to `batch_size` rows: a list, or {tensor: list} with an input_mapping.

        The batch is shorter at the end of the feed, perhaps empty; where rows of other columns
        follow; and, unless in train mode, at the end of a partition.

        Raises:
            ClusterError: a node of the cluster failed.
            ValueError: the rows do not have the columns of those before, or of input_mapping.
        """
        chunks = self._take(batch_size)
        if self.input_tensors is None:
            self._columns_before.check_names(chunks)
            return as_rows(chunks)
        rows = as_rows(chunks, self._columns)
        return {name: [row[i] for row in rows] for i, name in enumerate(self.input_tensors)}

    def next_numpy(
        self, batch_size: int, columns: Sequence[str] | None = None, ragged: Sequence[str] = ()
    ) -> Any:
        """The same rows as arrays, first dimension rows, which are the caller's to write to; None
        without rows.

        Rows of a DataFrame come as {column: array} (or {tensor: array}), without a copy where
        one Arrow batch holds them all; Python rows come as a tuple of arrays where a row is a
        tuple, else as one array. docs/cluster.md says what a column becomes by its type.

        Args:
            batch_size: as of next_batch().
            columns: which of them; None: all.
            ragged: columns of lists of different lengths: an array of objects, which are one
                array for each row. Those of other columns must be of one length.

        Raises:
            ClusterError: a node of the cluster failed.
            ValueError: a column is not there, or no array holds its values.
        """
        chunks = [chunk for chunk in self._take(batch_size, arrays=True) if len(chunk)]
        if not chunks:
            return None
        if not isinstance(chunks[0], Columns):
            if columns is not None and self.input_tensors is None:
                raise ValueError(
                    "rows of an RDD have no columns: leave out `columns`, or feed a DataFrame"
                )
            return _chosen(arrays_of_rows(chunks, self.input_tensors), columns)
        names = self._columns or chunks[0].names
        known = dict(zip(self.input_tensors or names, names, strict=True))
        return {
            key: self._joined(chunks, name, key in ragged)
            for key, name in _chosen(known, columns).items()
        }

    def _joined(self, chunks: list[Columns], name: str, ragged: bool) -> np.ndarray:
        arrays = [chunk.array(name, ragged) for chunk in chunks]
        self._columns_before.check_shapes(name, arrays)
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def should_stop(self) -> bool:
        """Whether the feed has ended, as next_batch() has seen."""
        return self.done_feeding

    def terminate(self) -> None:
        """Ends the feed: the rest of its rows is skipped."""
        self._source.terminate()
        self.done_feeding = True

    def commit(self, rows: int | None = None) -> None:
        """All rows given so far are safe, in a checkpoint, say; or the first `rows` of them.

        Where a cluster with restart=True starts again, every partition that has rows that are not
        safe is sent again. It also reports progress: a process that is killed twice without any is
        not started again. Any thread may call it.

        Without `rows`, what in_step() has taken and not given yet is left out. That does not find
        rows that a generator below in_step() holds back, in a shuffle buffer or a thread: give
        `rows` then.
        """
        count = self.used if rows is None else rows
        self._source.commit(count)
        if count != 0 and hasattr(self.mgr, "note_commit"):
            self.mgr.note_commit()

    @property
    def taken(self) -> int:
        """How many rows were given so far: for commit(), where they are used later than taken."""
        return self._source.taken

    def _take(self, batch_size: int, arrays: bool = False) -> list[Chunk]:
        if self.done_feeding:
            return []
        steps.note_taking(self)
        chunks = self._source.take(batch_size, self.train_mode, arrays)
        self.done_feeding = self._source.ended
        return chunks


def fit_together(chunk: Chunk, other: Chunk) -> bool:
    """Whether one minibatch may hold both: rows of the same columns, or Python rows."""
    if isinstance(chunk, Columns):
        return chunk.like(other)
    return not isinstance(other, Columns)


def as_rows(chunks: list[Chunk], columns: list[str] | None = None) -> list[Any]:
    """All rows in one list; a row of columns becomes a tuple, of `columns` where they are given."""
    rows: list[Any] = []
    for chunk in chunks:
        if isinstance(chunk, Columns):
            chunk = chunk.rows(columns)
        elif not isinstance(chunk, list):
            chunk = chunk.rows()
        if rows:
            rows.extend(chunk)
        else:
            rows = chunk
    return rows


def arrays_of_rows(chunks: list[Chunk], tensors: list[str] | None) -> Any:
    """Python rows, of which there are some, as DataFeed.next_numpy() says."""
    if isinstance(chunks[0], PickledArrays) and all(chunks[0].like(chunk) for chunk in chunks):
        arrays = pickled_arrays.join(chunks)
        if not chunks[0].tuples:  # the rows are numbers, or lists, whose items are the fields
            if tensors is None:
                return arrays[0]
            arrays = tuple(arrays[0].T)
    else:
        rows = as_rows(chunks)
        if not isinstance(rows[0], tuple) and tensors is None:
            return _as_array(rows)
        arrays = tuple(_as_array(values) for values in zip(*rows, strict=True))
    return dict(zip(tensors, arrays, strict=True)) if tensors is not None else arrays


def _as_array(values: Sequence[Any]) -> np.ndarray:
    """Numbers as NumPy does; strings and bytes as objects, as columns of them are."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(
            "the rows have lists of different lengths, which make no array: pad them, take them by "
            "next_batch(), or feed a DataFrame, whose columns may be ragged"
        ) from None
    # NumPy's own strings have no zeros at their end, and numbers beside strings become strings.
    return np.asarray(values, object) if array.dtype.kind in "SU" else array


def _chosen(named: Any, columns: Sequence[str] | None) -> Any:
    """Those of a dict that `columns` names. Raises ValueError where one is not there."""
    if columns is None:
        return named
    if missing := [name for name in columns if name not in named]:
        raise ValueError(f"the rows have no column {missing[0]!r}: they have {', '.join(named)}")
    return {name: named[name] for name in columns}
