"""Slices of a feed's chunks in the shape that a program wants: rows, arrays, a tf.data.Dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hearth.tensorflowonspark import marker, pickled_arrays
from hearth.tensorflowonspark.columns import Columns
from hearth.tensorflowonspark.pickled_arrays import PickledArrays
from hearth.tensorflowonspark.row_source import RowSource


class QueueSource:
    """Rows of a TFManager's queue, one by one: None ends the feed. For programs that fill it."""

    def __init__(self, queue: Any, results: Any):
        self._queue = queue
        self._results = results
        self.ended = False

    def take(self, count: int, across_partitions: bool, arrays: bool = False) -> list[list[Any]]:
        rows: list[Any] = []
        while len(rows) < count:
            item = self._queue.get(block=True)
            self._queue.task_done()
            if item is None:
                self.ended = True
                break
            if not isinstance(item, marker.Marker):
                rows.append(item)
            elif rows and not across_partitions:
                break
        return [rows]

    def put_results(self, results: list[Any]) -> None:
        for item in results:
            self._results.put(item, block=True)

    def commit(self) -> None:
        """Nobody would send the rows again."""

    def terminate(self) -> None:
        """Takes what is in the queue already; the one who fills it looks at the state."""
        while not self._queue.empty():
            self._queue.get()
            self._queue.task_done()


class FeedSource(RowSource):
    """Rows of a node's feed."""

    def terminate(self) -> None:
        self._queue.terminate()

    def commit(self) -> None:
        self._queue.rows.commit()


def open_source(mgr: Any, queue: Any, results: Any) -> QueueSource | FeedSource:
    """The source for a manager's queue. Raises ValueError where there is no such queue."""
    from hearth.tensorflowonspark.feed_server import FeedQueue

    if queue is None:
        raise ValueError("the cluster has no feed of that name: name it in TFCluster.run(queues=)")
    return FeedSource(queue) if isinstance(queue, FeedQueue) else QueueSource(queue, results)


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
    """As TFNode.DataFeed.next_numpy() says; None without rows."""
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


def as_dataset(feed: Any, batch_size: int, output_signature: Any) -> Any:
    """As TFNode.DataFeed.as_dataset() says."""
    import itertools

    import tensorflow as tf

    def batches() -> Iterator[Any]:
        while not feed.should_stop():
            batch = feed.next_numpy(batch_size)
            if batch is not None:
                yield batch

    source = batches()
    if output_signature is None:
        first = next(source, None)
        if first is None:
            raise ValueError("the feed has ended without a row: give as_dataset output_signature")
        source = itertools.chain([first], source)
        output_signature = tf.nest.map_structure(_spec, first)
    return tf.data.Dataset.from_generator(lambda: source, output_signature=output_signature)


def _spec(array: np.ndarray) -> Any:
    """The type of minibatches like this one, of any number of rows."""
    import tensorflow as tf

    kind = tf.string if array.dtype.kind in "OSU" else array.dtype
    return tf.TensorSpec((None, *array.shape[1:]), kind)
