"""Minibatches of rows, the common interface of all feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from hearth.errors import invalid
from hearth.ranks import steps
from hearth.rows import pickled_arrays
from hearth.rows.columns import Columns, ColumnsBefore
from hearth.rows.pickled_arrays import PickledArrays

# A chunk of rows: a list of Python objects, Columns or PickledArrays.
Chunk = Any


class Source(Protocol):
    """A source of rows. Not thread-safe.

    Attributes:
        taken: how many rows were returned.
        ended: whether there are no more rows.
    """

    @property
    def taken(self) -> int:
        """The number of rows taken so far."""

    @property
    def ended(self) -> bool:
        """Whether there are no more rows."""

    def take(self, count: int, across_partitions: bool = True, arrays: bool = False) -> list[Chunk]:
        """Waits for up to `count` rows, as slices of chunks that fit_together()."""

    def commit(self, rows: int | None = None) -> None:
        """Marks all rows returned so far, or the first `rows` of them, as safe: they are not sent
        again."""

    def terminate(self) -> None:
        """Ends the source: no more rows are needed."""


class Minibatches:
    """The rows of a source in minibatches. Not thread-safe. `mgr` is `ctx.mgr`."""

    # Number of rows in the minibatches that in_step() has returned, set by in_step(); None: all
    # rows taken so far.
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

        The batch is shorter, possibly empty, at the end of the feed, before rows with other
        columns, and, unless in train mode, at the end of a partition.

        Raises:
            ClusterError: a node of the cluster failed.
            ValueError: the columns differ from those of earlier rows, or of input_mapping.
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
        """Like next_batch(), but returns writable arrays whose first dimension is the row, or None
        if there are no rows.

        Rows of a DataFrame are returned as {column: array} (or {tensor: array}), without a copy
        if one Arrow batch holds them all; Python rows as a tuple of arrays if a row is a tuple,
        else as one array. docs/cluster.md lists how column types are converted.

        Args:
            batch_size: as next_batch().
            columns: names of columns; None: all.
            ragged: columns of lists with different lengths, returned as an object array of one
                array per row. Lists of other columns must have equal lengths.

        Raises:
            ClusterError: a node of the cluster failed.
            ValueError: an unknown column, or values that do not fit an array.
        """
        chunks = [chunk for chunk in self._take(batch_size, arrays=True) if len(chunk)]
        if not chunks:
            return None
        if not isinstance(chunks[0], Columns):
            if columns is not None and self.input_tensors is None:
                raise invalid(
                    "rows of an RDD have no columns: remove `columns`, or feed a DataFrame"
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
        """Whether next_batch() has reached the feed's end."""
        return self.done_feeding

    def terminate(self) -> None:
        """Ends the feed: its remaining rows are skipped."""
        self._source.terminate()
        self.done_feeding = True

    def commit(self, rows: int | None = None) -> None:
        """Marks all rows returned so far, or the first `rows` of them, as safe, e.g. because a
        checkpoint includes them.

        If a cluster with restart=True restarts, every partition with rows that are not safe is sent
        again. Commits also count as progress: a cluster is not restarted if a process is killed
        twice without a commit in between. Thread-safe.

        Without `rows`, rows that in_step() has taken but not returned yet do not count. If a
        generator passed to in_step() holds rows back, in a shuffle buffer or a thread, those rows
        would be marked as safe, too: pass `rows` in this case.
        """
        count = self.used if rows is None else rows
        self._source.commit(count)
        if count != 0 and hasattr(self.mgr, "note_commit"):
            self.mgr.note_commit()

    @property
    def taken(self) -> int:
        """How many rows were returned so far; pass this number to commit() if the rows are used
        later."""
        return self._source.taken

    def _take(self, batch_size: int, arrays: bool = False) -> list[Chunk]:
        if self.done_feeding:
            return []
        steps.note_taking(self)
        chunks = self._source.take(batch_size, self.train_mode, arrays)
        self.done_feeding = self._source.ended
        return chunks


def fit_together(chunk: Chunk, other: Chunk) -> bool:
    """Whether one minibatch may contain both chunks: both have the same columns, or both are Python
    rows."""
    if isinstance(chunk, Columns):
        return chunk.like(other)
    return not isinstance(other, Columns)


def as_rows(chunks: list[Chunk], columns: list[str] | None = None) -> list[Any]:
    """All rows in one list. Columnar rows become tuples, which contain only `columns` if given."""
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
    """Converts Python rows like DataFeed.next_numpy(). There must be at least one row."""
    if isinstance(chunks[0], PickledArrays) and all(chunks[0].like(chunk) for chunk in chunks):
        arrays = pickled_arrays.join(chunks)
        if not chunks[0].tuples:  # the rows are numbers, or lists of fields
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
    """Numbers as a NumPy array; strings and bytes as an object array, like columns of strings."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise invalid(
            "the rows have lists of different lengths, which do not fit an array: pad them, use "
            "next_batch(), or feed a DataFrame, whose columns may be ragged"
        ) from None
    # NumPy's string types drop trailing zero bytes, and would convert mixed numbers to strings.
    return np.asarray(values, object) if array.dtype.kind in "SU" else array


def _chosen(named: Any, columns: Sequence[str] | None) -> Any:
    """The items of the dict `named` whose keys are in `columns`. Raises ValueError for an unknown
    column."""
    if columns is None:
        return named
    if missing := [name for name in columns if name not in named]:
        raise invalid(f"the rows have no column {missing[0]!r}: they have {', '.join(named)}")
    return {name: named[name] for name in columns}
