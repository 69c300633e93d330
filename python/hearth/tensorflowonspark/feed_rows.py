"""Slices of a feed's chunks in the shape that a program wants: rows, arrays, a tf.data.Dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hearth.tensorflowonspark import marker
from hearth.tensorflowonspark.row_source import RowSource

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class QueueSource:
    """Rows of a TFManager's queue, one by one: None ends the feed. For programs that fill it."""

    def __init__(self, queue: Any, results: Any):
        self._queue = queue
        self._results = results
        self.ended = False

    def take(self, count: int, across_partitions: bool) -> list[list[Any]]:
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
            chunk = list(zip(*(column.to_pylist() for column in chunk.columns), strict=True))
        if rows:
            rows.extend(chunk)
        else:
            rows = chunk
    return rows


def as_arrays(chunks: list[Any], columns: list[str] | None, tensors: list[str] | None) -> Any:
    """As TFNode.DataFeed.next_numpy() says; None without rows."""
    import numpy as np

    chunks = [chunk for chunk in chunks if len(chunk)]
    if not chunks:
        return None
    if not isinstance(chunks[0], list):
        names = columns or chunks[0].schema.names
        keys = tensors or names
        return {key: _join(chunks, name) for key, name in zip(keys, names, strict=True)}
    rows = as_rows(chunks)
    if not isinstance(rows[0], tuple) and tensors is None:
        return np.asarray(rows)
    arrays = tuple(np.asarray(values) for values in zip(*rows, strict=True))
    return dict(zip(tensors, arrays, strict=True)) if tensors is not None else arrays


def _join(chunks: list[pa.RecordBatch], name: str) -> np.ndarray:
    import numpy as np

    parts = [column_to_numpy(chunk.column(name)) for chunk in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def column_to_numpy(column: pa.Array) -> np.ndarray:
    """The column's values, shape [rows] or, for lists of one length, [rows, length].

    Without a copy for numbers without nulls, and lists of them; other types become objects.
    """
    import numpy as np
    import pyarrow as pa

    kind = column.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if column.null_count == 0:
            values = column_to_numpy(column.flatten())
            if pa.types.is_fixed_size_list(kind):
                return values.reshape(len(column), kind.list_size, *values.shape[1:])
            offsets = column.offsets.to_numpy()
            lengths = np.diff(offsets)
            if len(lengths) and (lengths == lengths[0]).all():
                return values.reshape(len(column), int(lengths[0]), *values.shape[1:])
        return column.to_numpy(zero_copy_only=False)
    if column.null_count == 0 and pa.types.is_primitive(kind) and not pa.types.is_boolean(kind):
        return column.to_numpy(zero_copy_only=True)
    return column.to_numpy(zero_copy_only=False)


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
