"""The rows of a node's feed, as its main function takes them: in minibatches, results back."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hearth.cluster.errors import ClusterError
from hearth.collective import steps
from hearth.native import timeline
from hearth.rows import pickled_arrays, pickles
from hearth.rows.column_results import ColumnResults
from hearth.rows.columns import Columns, ColumnsBefore
from hearth.rows.pickled_arrays import PickledArrays

# A chunk of rows: a list of Python objects, Columns or PickledArrays.
Chunk = Any

# Since when threads of this process have waited for rows, but for the one of in_step().
_waits: dict[int, float] = {}


def waited_s() -> float:
    """For how long this process has been waiting for rows that no step can go on without."""
    return max((time.monotonic() - since for since in list(_waits.values())), default=0.0)


@contextmanager
def _waiting() -> Iterator[None]:
    thread = threading.current_thread()
    if thread.name != steps.AHEAD:
        _waits[thread.ident or 0] = time.monotonic()
    try:
        with timeline.span("wait for rows"):
            yield
    finally:
        _waits.pop(thread.ident or 0, None)


class DataFeed:
    """The rows that Spark brings to this node, in minibatches; and the results back.

    One thread uses it. `mgr` is `ctx.mgr`, the node's feeds by name.
    """

    # Set by in_step(): how many rows are in the minibatches that it has given; None: all taken.
    used: int | None = None

    def __init__(
        self,
        mgr: Any,
        train_mode: bool = True,
        qname_in: str = "input",
        qname_out: str = "output",
        input_mapping: Mapping[str, str] | None = None,
    ):
        """Opens a feed.

        Args:
            mgr: where the feeds are.
            train_mode: False: a minibatch ends with its partition and results go back.
            qname_in: name of the feed.
            qname_out: name of the results' queue, for those who bring one.
            input_mapping: tensor by column: batches become {tensor: values}, the columns taken in
                the order of their names.

        Raises:
            ValueError: there is no feed of that name.
        """
        self.mgr = mgr
        self._columns_before = ColumnsBefore()
        self.train_mode = train_mode
        self.done_feeding = False
        self.queue_in = mgr.get_queue(qname_in)
        self.queue_out = mgr.get_queue(qname_out)
        self.input_tensors = None
        self._columns = None
        if input_mapping is not None:
            self._columns = sorted(input_mapping)
            self.input_tensors = [input_mapping[column] for column in self._columns]
        self._source = self._open()

    def _open(self) -> Any:
        """The source of the rows: something like a RowSource."""
        return RowSource(self.queue_in)

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

    def batch_results(self, results: Any) -> None:
        """Sends the results of rows that next_batch() gave, one per row, in their order.

        An array of numbers, a dict of arrays by the names of the results' columns, or an Arrow
        record batch goes back in columns; anything else as a list of Python objects.

        Raises:
            ValueError: there are more results than rows without one.
        """
        found = ColumnResults.of(results)
        self._source.put_results(list(results) if found is None else found)

    def terminate(self) -> None:
        """Ends the feed: the rest of its rows is skipped, and the cluster's train() returns."""
        self.mgr.set("state", "terminating")
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


class RowSource:
    """The rows of a node's feed as Python objects or arrays; one thread.

    A FeedReader of the core takes them out of rings and counts what was given.
    """

    def __init__(self, queue: Any):
        """Reads a FeedQueue. Raises ValueError where there is none."""
        from hearth.native._core import FeedReader

        if queue is None:
            raise ValueError("the cluster has no feed of that name: name it in run(queues=)")
        self._queue = queue
        self._reader = FeedReader(queue)
        self._chunk: Chunk = []
        self._at = 0  # the chunk's next row
        self._unpickler = pickles.Unpickler()

    @property
    def ended(self) -> bool:
        return self._reader.ended

    def terminate(self) -> None:
        self._queue.terminate()

    def commit(self, rows: int | None = None) -> None:
        self._queue.commit(rows)

    @property
    def taken(self) -> int:
        return self._queue.taken

    def take(self, count: int, across_partitions: bool = True, arrays: bool = False) -> list[Chunk]:
        """Up to `count` rows, as slices of chunks that fit_together(); fewer at the feed's end.

        Waits for rows. Where not `across_partitions`, also a partition's end cuts the batch short.
        With `arrays`, pickled rows of numbers come as PickledArrays.

        Raises:
            ClusterError: the cluster failed.
        """
        slices: list[Chunk] = []
        wanted = count
        while wanted > 0:
            left = len(self._chunk) - self._at
            if left == 0:
                if not self._advance(arrays) and (self.ended or (slices and not across_partitions)):
                    break
                continue
            if slices and not fit_together(slices[-1], self._chunk):
                break
            used = min(left, wanted)
            slices.append(self._slice(used))
            self._reader.give(used)
            self._at += used
            wanted -= used
        return slices

    def _slice(self, count: int) -> Chunk:
        if count == len(self._chunk):
            return self._chunk
        if isinstance(self._chunk, list):
            return self._chunk[self._at : self._at + count]
        return self._chunk.slice(self._at, count)

    def _advance(self, arrays: bool) -> bool:
        """Makes the next chunk the current one; False at the end of a partition, or of the feed."""
        from hearth import HearthError

        self._chunk, self._at = [], 0
        try:
            with _waiting():
                found = self._reader.next()
        except HearthError:
            self._check()
            raise
        if found is None:
            self._unpickler = pickles.Unpickler()
            return False
        batch, pickled, batched, from_afar = found
        if pickled:
            self._chunk = self._unpickle(batch, batched, from_afar, arrays and batched)
        else:
            import pyarrow as pa

            self._chunk = Columns(pa.record_batch(batch))
        self._reader.opened(len(self._chunk), self._unpickler.within_pickle)
        return True

    def _check(self) -> None:
        if reason := self._queue.failure:
            raise ClusterError(reason) from None

    def _unpickle(self, batch: Any, batched: bool, from_afar: bool, arrays: bool) -> Chunk:
        """The rows of all pickles that end in this batch."""
        if arrays and not self._unpickler.within_pickle:
            found = pickled_arrays.load_batch(batch)
            if found is not None:
                return found
        rows: list[Any] = []
        for value in self._unpickler.values(batch, from_afar):
            if not batched:
                rows.append(value)
            elif rows:
                rows.extend(value)
            else:
                rows = value if isinstance(value, list) else list(value)
        return rows

    def put_results(self, results: list[Any] | ColumnResults) -> None:
        """As batch_results(); raises ClusterError where the cluster failed."""
        owed = self._reader.owed
        if len(results) > owed:
            raise ValueError(
                f"batch_results() was given {len(results)} results, but only {owed} rows are "
                "without one: give exactly one result per row of next_batch()"
            )
        start = 0
        while start < len(results):
            count = min(self._reader.owed_first, len(results) - start)
            if isinstance(results, list):
                part = results[start : start + count]
                self._send(pickle.dumps(part, pickle.HIGHEST_PROTOCOL))
            else:
                self._send(results.slice(start, count).dumped())
            self._reader.answered(count)
            start += count

    def _send(self, results: bytes | memoryview) -> None:
        from hearth import HearthError

        try:
            for pieces in pickles.batches_of_pickles([results]):
                if not self._reader.write_results(pieces):
                    return  # only this feed task is gone; Spark sends its rows again
        except HearthError:
            self._check()
            raise


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
