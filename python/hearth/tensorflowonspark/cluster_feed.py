"""The driver's side of the feed: RDDs, DataFrames and streams on their way to the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.tensorflowonspark import TFSparkNode
from hearth.tensorflowonspark.feed_task import FeedSpec, feed, infer
from hearth.tensorflowonspark.pickles import batches_of_pickles, pickle_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from hearth.tensorflowonspark.TFCluster import TFCluster


def train(cluster: TFCluster, rows: Any, epochs: int, timeout_s: float, queue: str) -> None:
    """Feeds an RDD or DataFrame `epochs` times; a DStream from its next interval on."""
    if hasattr(rows, "foreachRDD"):
        rows.foreachRDD(lambda rdd: _train_interval(cluster, rdd, timeout_s, queue))
        return
    if _feed_once(cluster, rows, timeout_s, queue, keep=epochs > 1):
        return
    if epochs > 1:
        cluster.replay(queue, epochs - 1, timeout_s)


def _train_interval(cluster: TFCluster, rdd: Any, timeout_s: float, queue: str) -> None:
    if _feed_once(cluster, rdd, timeout_s, queue, keep=False):
        cluster.server.stop()  # a node has terminated its feed: shutdown(ssc) ends the stream


def _feed_once(cluster: TFCluster, rows: Any, timeout_s: float, queue: str, keep: bool) -> bool:
    """Feeds each row once; whether a node wants no more rows."""
    spec = TFSparkNode.feed_spec(cluster.cluster_info, queue, timeout_s, keep=keep)
    if hasattr(rows, "mapInArrow"):
        frame = rows.mapInArrow(partial(_feed_batches, _columnar(spec)), "ended boolean")
        return any(row.ended for row in cluster.feed_job(spec.feed, frame.collect))
    chunks, spec = _pickles(rows, spec)
    tasks = chunks.mapPartitionsWithIndex(partial(_feed_pickles, spec))
    return any(cluster.feed_job(spec.feed, tasks.collect))


def inference(cluster: TFCluster, rows: Any, timeout_s: float, queue: str, schema: Any) -> Any:
    """As TFCluster.inference()."""
    spec = TFSparkNode.feed_spec(cluster.cluster_info, queue, timeout_s, mode="inference")
    if hasattr(rows, "mapInArrow"):
        pickled = rows.mapInArrow(partial(_infer_batches, _columnar(spec)), "results binary")
        results = pickled.rdd.mapPartitions(_unpickle_rows)
    else:
        chunks, spec = _pickles(rows, spec)
        marked = cluster.mark_inference(chunks)
        results = marked.mapPartitionsWithIndex(partial(_infer_pickles, spec))
    if schema is None:
        return results
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate().createDataFrame(results, schema)


def _columnar(spec: FeedSpec) -> FeedSpec:
    from dataclasses import replace

    return replace(spec, format="arrow")


def _pickles(rows: Any, spec: FeedSpec) -> tuple[Any, FeedSpec]:
    """An RDD of pickles, which are Spark's own where it holds the rows as such.

    Those need not be opened in the feed task. Rows that a Python function of the same stage makes
    are objects there already, and are pickled in lists, as Spark would do.
    """
    from pyspark import RDD
    from pyspark.rdd import PipelinedRDD
    from pyspark.serializers import BatchedSerializer, CPickleSerializer, NoOpSerializer

    serializer = rows._jrdd_deserializer
    made_here = isinstance(rows, PipelinedRDD) and rows._is_pipelinable()
    batched = isinstance(serializer, BatchedSerializer)
    inner = serializer.serializer if batched else serializer
    if made_here or type(inner) is not CPickleSerializer:
        return rows.mapPartitions(pickle_rows), spec
    from dataclasses import replace

    return RDD(rows._jrdd, rows.ctx, NoOpSerializer()), replace(spec, batched=batched)


def _feed_pickles(spec: FeedSpec, index: int, chunks: Iterator[bytes]) -> Iterator[bool]:
    yield feed(spec, index, batches_of_pickles(chunks))


def _infer_pickles(spec: FeedSpec, index: int, chunks: Iterator[bytes]) -> Iterator[Any]:
    return infer(spec, index, batches_of_pickles(chunks))


def _feed_batches(spec: FeedSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    ended = feed(spec, TFSparkNode.partition_id(), _with_rows(batches))
    yield pa.record_batch({"ended": pa.array([ended])})


def _infer_batches(spec: FeedSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    results = infer(spec, TFSparkNode.partition_id(), _with_rows(batches))
    for chunk in pickle_rows(results):
        yield pa.record_batch({"results": pa.array([chunk], pa.binary())})


def _with_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)


def _unpickle_rows(rows: Iterator[Any]) -> Iterator[Any]:
    import pickle

    for row in rows:
        yield from pickle.loads(row.results)
