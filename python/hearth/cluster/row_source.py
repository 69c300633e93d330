"""Rows of one feed as the main function takes them: across batches, partitions and epochs."""

from __future__ import annotations

import pickle
from collections import deque
from typing import TYPE_CHECKING, Any

from hearth.rows import pickled_arrays, pickles
from hearth.rows.columns import Columns

if TYPE_CHECKING:
    from hearth.cluster.feed_server import FeedQueue

# A chunk of rows: a list of Python objects, Columns or PickledArrays.
Chunk = Any


class RowSource:
    """Reads one FeedQueue; one thread."""

    def __init__(self, queue: FeedQueue):
        self._queue = queue
        self._partition: Any = None
        self._chunk: Chunk = []
        self._at = 0  # the chunk's next row
        self._held = 0  # batches that the chunk came from
        self._unpickler = pickles.Unpickler()
        self._owing: deque[list[Any]] = deque()  # [partition, rows whose results are owed]
        self._arrays = False
        self.ended = False

    def take(self, count: int, across_partitions: bool = True, arrays: bool = False) -> list[Chunk]:
        """Up to `count` rows, as slices of chunks; fewer at the end of the feed.

        Waits for rows. Where not `across_partitions`, also a partition's end cuts the batch short.
        With `arrays`, pickled rows of numbers come as PickledArrays.

        Raises:
            ClusterError: the cluster failed.
        """
        slices: list[Chunk] = []
        self._arrays = arrays
        wanted = count
        while wanted > 0:
            left = len(self._chunk) - self._at
            if left == 0:
                before = self._partition
                if not self._advance():
                    break
                if self._partition is not before and slices and not across_partitions:
                    break
                continue
            used = min(left, wanted)
            whole = used == len(self._chunk)
            slices.append(self._chunk if whole else self._slice(used))
            wanted -= used
            self._use(used)
        return slices

    def _slice(self, count: int) -> Chunk:
        if isinstance(self._chunk, list):
            return self._chunk[self._at : self._at + count]
        return self._chunk.slice(self._at, count)

    def _use(self, count: int) -> None:
        """Counts `count` rows as handed out; a batch that is used up is settled at once."""
        self._at += count
        partition = self._partition
        self._queue.rows.take(partition, count)
        if partition.inference:
            partition.hold(count)
            if self._owing and self._owing[-1][0] is partition:
                self._owing[-1][1] += count
            else:
                self._owing.append([partition, count])
        if self._at == len(self._chunk):
            self._chunk, self._at = [], 0
            held, self._held = self._held, 0
            partition.settle(held)

    def _advance(self) -> bool:
        """Makes the next chunk the current one, or the next partition; False at the end."""
        if self._partition is None:
            self._partition = self._queue.next()
            self.ended = self._partition is None
            return not self.ended
        partition = self._partition
        try:
            batch = partition.read()
        except ConnectionError:
            self._queue.check()
            if partition.keep:
                self._queue.spool(partition.feed).rollback()
            self._queue.rows.complete(partition)
            partition.lose()
            self._forget()
            return True
        if batch is None:
            self._queue.rows.complete(partition)
            if self._held:  # batches without a row
                partition.settle(self._held)
            self._forget()
            return True
        if partition.keep:
            self._queue.spool(partition.feed).add(batch, partition.format)
        self._held += 1
        rows = self._unpickle(batch) if partition.format.pickled else Columns(batch)
        partition.release()
        if not self._unpickler.within_pickle:
            if partition.keep:
                self._queue.spool(partition.feed).commit()
            partition.note_given()
        if len(rows):
            self._chunk, self._at = rows, 0
        return True

    def _forget(self) -> None:
        self._partition, self._chunk, self._at, self._held = None, [], 0, 0
        self._unpickler = pickles.Unpickler()

    def _unpickle(self, batch: Any) -> Chunk:
        """The rows of all pickles that end in this batch."""
        format = self._partition.format
        if self._arrays and format.batched and not self._unpickler.within_pickle:
            arrays = pickled_arrays.load_batch(batch)
            if arrays is not None:
                return arrays
        rows: list[Any] = []
        for value in self._unpickler.values(batch, format.from_afar):
            if not format.batched:
                rows.append(value)
            elif rows:
                rows.extend(value)
            else:
                rows = value if isinstance(value, list) else list(value)
        return rows

    def put_results(self, results: list[Any]) -> None:
        """Sends results back, one per row, in the order in which the rows were taken.

        Raises:
            ValueError: there are more results than rows without one.
        """
        owed = sum(count for _, count in self._owing)
        if len(results) > owed:
            raise ValueError(
                f"batch_results() was given {len(results)} results, but only {owed} rows are "
                "without one: give exactly one result per row of next_batch()"
            )
        start = 0
        while start < len(results):
            partition, count = self._owing[0]
            used = min(count, len(results) - start)
            self._send(partition, results[start : start + used])
            start += used
            self._owing[0][1] -= used
            if not self._owing[0][1]:
                self._owing.popleft()
            partition.settle(used)

    def _send(self, partition: Any, results: list[Any]) -> None:
        try:
            for batch in pickles.batches_of_pickles(
                [pickle.dumps(results, pickle.HIGHEST_PROTOCOL)]
            ):
                partition.write_results(batch)
        except (ConnectionError, RuntimeError):
            self._queue.check()  # else only this feed task is gone; Spark sends its rows again
