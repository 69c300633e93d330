"""A node's feed: reads its rows in minibatches, and sends results back."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hearth.cluster.errors import ClusterError
from hearth.cluster.node.minibatches import Chunk, Minibatches, fit_together
from hearth.errors import HearthError, invalid
from hearth.native import timeline
from hearth.ranks import steps
from hearth.rows import pickled_arrays, pickles
from hearth.rows.column_results import ColumnResults
from hearth.rows.columns import Columns

# Start time of each thread's current wait for rows, except waits of in_step()'s read-ahead thread.
_waits: dict[int, float] = {}


def waited_s() -> float:
    """How long this process has been waiting for rows that the next step needs."""
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


class DataFeed(Minibatches):
    """The rows that Spark sends to this node, in minibatches; also sends results back."""

    _source: Any  # a Source with put_results()

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
            mgr: the node's manager, which has the feeds.
            train_mode: False: a minibatch ends with its partition, and results are sent back.
            qname_in: name of the feed.
            qname_out: name of the results' queue; unused, for compatibility.
            input_mapping: the tensor of each column: batches become {tensor: values}, in the order
                of the columns' names.

        Raises:
            ValueError: an unknown feed.
        """
        self.queue_in, self.queue_out = mgr.get_queue(qname_in), mgr.get_queue(qname_out)
        super().__init__(self._open(), mgr, train_mode, input_mapping)

    def _open(self) -> Any:
        return RowSource(self.queue_in)

    def batch_results(self, results: Any) -> None:
        """Sends results, one per row of next_batch(), in the same order.

        An array of numbers, a dict of arrays by column name, or an Arrow record batch is sent in
        columns; anything else is sent as a list of Python objects.

        Raises:
            ValueError: there are more results than rows without a result.
        """
        found = ColumnResults.of(results)
        self._source.put_results(list(results) if found is None else found)

    def terminate(self) -> None:
        """Ends the feed: its remaining rows are skipped, and the cluster's train() returns."""
        self.mgr.set("state", "terminating")
        super().terminate()


class RowSource:
    """The rows of a node's feed as Python objects or arrays. Not thread-safe.

    The core's FeedReader reads them from rings and counts them.
    """

    def __init__(self, queue: Any):
        """Reads a FeedQueue. Raises ValueError if `queue` is None."""
        from hearth.native._core import FeedReader

        if queue is None:
            raise invalid("the cluster has no feed of this name: add the name to run(queues=)")
        self._queue = queue
        self._reader = FeedReader(queue)
        self._chunk: Chunk = []
        self._at = 0  # next row of the chunk
        self._unpickler = pickles.Unpickler()

    @property
    def ended(self) -> bool:
        """Whether the feed has ended and all of its rows were taken."""
        return self._reader.ended

    def terminate(self) -> None:
        """Ends the feed: no more rows are needed."""
        self._queue.terminate()

    def commit(self, rows: int | None = None) -> None:
        """Marks all rows taken so far, or the first `rows` of them, as safe: they are not sent
        again."""
        self._queue.commit(rows)

    @property
    def taken(self) -> int:
        """The number of rows taken so far."""
        return self._queue.taken

    def take(self, count: int, across_partitions: bool = True, arrays: bool = False) -> list[Chunk]:
        """Up to `count` rows, as slices of chunks that fit_together(); fewer at the feed's end.

        Waits for rows. Unless `across_partitions`, the end of a partition also ends the batch.
        With `arrays`, pickled rows of numbers are returned as PickledArrays.

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
        """Advances to the next chunk; False at the end of a partition, or of the feed."""
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
        batch, pickled, batched, from_remote = found
        if pickled:
            self._chunk = self._unpickle(batch, batched, from_remote, arrays and batched)
        else:
            import pyarrow as pa

            self._chunk = Columns(pa.record_batch(batch))
        self._reader.opened(len(self._chunk), self._unpickler.within_pickle)
        return True

    def _check(self) -> None:
        if reason := self._queue.failure:
            raise ClusterError(reason) from None

    def _unpickle(self, batch: Any, batched: bool, from_remote: bool, arrays: bool) -> Chunk:
        """The rows of all pickles that end in this batch."""
        if arrays and not self._unpickler.within_pickle:
            found = pickled_arrays.load_batch(batch)
            if found is not None:
                return found
        rows: list[Any] = []
        for value in self._unpickler.values(batch, from_remote):
            if not batched:
                rows.append(value)
            elif rows:
                rows.extend(value)
            else:
                rows = value if isinstance(value, list) else list(value)
        return rows

    def put_results(self, results: list[Any] | ColumnResults) -> None:
        """Like batch_results(), but raises ClusterError if the cluster has failed."""
        owed = self._reader.owed
        if len(results) > owed:
            raise invalid(
                f"batch_results() got {len(results)} results, but only {owed} rows still need a "
                "result: pass exactly one result per row of next_batch()"
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
        try:
            for pieces in pickles.batches_of_pickles([results]):
                if not self._reader.write_results(pieces):
                    return  # only this feed task has ended; Spark resends its rows
        except HearthError:
            self._check()
            raise
