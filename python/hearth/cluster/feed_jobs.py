"""The driver's side of the feed: RDDs, DataFrames and streams on their way to the nodes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.cluster import roles
from hearth.cluster.errors import NodeError, told_to_driver
from hearth.cluster.feed_spec import FeedSpec, feed_spec, feed_timeout_or_never
from hearth.cluster.feed_task import feed, infer, infer_rows
from hearth.cluster.pace import PaceLine
from hearth.cluster.watch import ClusterJob
from hearth.rows.column_results import result_columns
from hearth.rows.columns import check_carried
from hearth.rows.pickles import batches_of_pickles, pickle_rows
from hearth.spark.arrow_map import map_in_arrow
from hearth.spark.task_resources import partition_id

if TYPE_CHECKING:
    import pyarrow as pa

    from hearth.cluster.cluster import Cluster

# After a loss Spark gets this long to count the rows, so that the failure is told in time.
_COUNT_S = 6.0
# What nodes said last of a job's partitions may come after Spark's word that the job is done.
_LAST_EVENTS_S = 10.0


@dataclass
class FeedJob:
    """The rows of one train(), or of one epoch of it."""

    rows: Any
    queue: str
    timeout_s: float
    keep: bool = False  # the nodes replay the rows later
    feed: str = field(default_factory=lambda: secrets.token_hex(8))
    brought: frozenset[int] | None = None  # partitions that had rows, once all were taken
    compare: bool = False  # safe partitions are computed again and compared, else skipped


def is_frame(rows: Any) -> bool:
    """Whether they are a DataFrame. One of Spark Connect has every attribute, as a column."""
    return hasattr(type(rows), "mapInArrow")


def check_rows(rows: Any, call: str) -> None:
    """Raises TypeError or ValueError where these are no rows that Spark can bring to nodes."""
    if is_frame(rows):
        if call == "train" and rows.isStreaming:
            raise ValueError(
                "train() takes no streaming DataFrame: feed its batches, by "
                "frame.writeStream.foreachBatch(lambda batch, _: cluster.train(batch)).start()"
            )
    elif not hasattr(rows, "_jrdd_deserializer") and not hasattr(rows, "foreachRDD"):
        kind = type(rows)
        raise TypeError(
            f"{call}() takes a DataFrame or an RDD of Spark, not a {kind.__module__}."
            f"{kind.__qualname__}: make one by spark.createDataFrame(...) or sc.parallelize(...)"
        )


def train(cluster: Cluster, rows: Any, epochs: int, timeout_s: float, queue: str) -> None:
    """Feeds an RDD or DataFrame `epochs` times; a DStream from its next interval on."""
    if not is_frame(rows) and hasattr(rows, "foreachRDD"):
        if cluster.restarts is not None:
            raise ValueError(
                "a DStream cannot be read again, so it needs a cluster without restart=True; "
                "Structured Streaming's foreachBatch can feed one that has it"
            )
        cluster.meta["server_addr"]  # a client may end the stream
        rows.foreachRDD(lambda rdd: _train_interval(cluster, rdd, timeout_s, queue))
        return
    if is_frame(rows):
        check_carried(rows.schema)
    cluster.running.watch.pace.begin()
    with PaceLine(lambda: cluster.running.watch.pace.line()):
        _train_all(cluster, rows, epochs, timeout_s, queue)


def _train_all(cluster: Cluster, rows: Any, epochs: int, timeout_s: float, queue: str) -> None:
    if cluster.restarts is not None:
        rows, compare = cluster.spark.pin(rows), not cluster.spark.pins
        for _ in range(epochs):
            if cluster.restarts.bring(FeedJob(rows, queue, timeout_s, compare=compare)):
                return
    else:
        job = FeedJob(rows, queue, timeout_s, keep=epochs > 1)
        if not _feed_once(cluster, job) and epochs > 1:
            _replay(cluster, job, epochs - 1)


def _train_interval(cluster: Cluster, rdd: Any, timeout_s: float, queue: str) -> None:
    if _feed_once(cluster, FeedJob(rdd, queue, timeout_s)):
        cluster.server.stop()  # a node has terminated its feed: shutdown(ssc) ends the stream


def _feed_once(cluster: Cluster, job: FeedJob) -> bool:
    """Feeds each row once; whether a node wants no more rows."""
    cluster.ledger.open(job.feed)
    try:
        return any(ended for _, ended in bring(cluster, job))
    except NodeError:
        watch = cluster.running.watch
        if watch.failure is not None and watch.failure.lost:
            watch.amend(_unconsumed(cluster, job))
            watch.check()
        raise
    finally:
        cluster.ledger.close(job.feed)


def _unconsumed(cluster: Cluster, job: FeedJob) -> str:
    """How many rows no node has taken. Takes _COUNT_S at most."""
    counting = ClusterJob(cluster.spark, cluster.running.watch, job.rows.count)
    counting.join(_COUNT_S)
    counting.cancel()
    taken = cluster.ledger.taken(job.feed)
    if counting.result is None:
        return f"{taken} rows were consumed, and Spark could not count the others in {_COUNT_S:g} s"
    return f"{counting.result - taken} of {counting.result} rows were not consumed"


def _replay(cluster: Cluster, job: FeedJob, times: int) -> None:
    feed_name = secrets.token_hex(8)
    cluster.ledger.open(feed_name)
    try:
        message = {"op": "replay", "queue": job.queue, "times": times, "feed": feed_name}
        cluster.running.broadcast({**message, "kept": job.feed})
        nodes = roles.fed_ids(cluster.plan.template)
        timeout_s = feed_timeout_or_never(job.timeout_s)
        cluster.running.watch.wait_replayed(feed_name, nodes, timeout_s)
    except NodeError:
        watch = cluster.running.watch
        if watch.failure is not None and watch.failure.lost:
            taken = cluster.ledger.taken(feed_name)
            watch.amend(f"{taken} rows of the {times} later epochs were consumed")
            watch.check()
        raise
    finally:
        cluster.ledger.close(feed_name)


def bring(cluster: Cluster, job: FeedJob) -> list[tuple[int, bool]]:
    """Sends all partitions of a job that are not safe.

    Returns:
        For each one that had rows, its number and whether its node wants no more.

    Raises:
        NodeError: a node, or an executor, failed.
        FeedTimeoutError: a node took no rows in time.
    """
    spec = feed_spec(
        cluster.nodes,
        job.queue,
        job.timeout_s,
        feed=job.feed,
        keep=job.keep,
        fenced=True,
        safe=frozenset() if job.compare else frozenset(cluster.ledger.safe(job.feed)),
    )
    if is_frame(job.rows):
        task = partial(_feed_batches, replace(spec, format="arrow"))
        tasks = map_in_arrow(job.rows, task, "partition int, ended boolean")
    else:
        chunks, spec = _pickles(job.rows, spec)
        tasks = chunks.mapPartitionsWithIndex(partial(_feed_pickles, spec))
    watch = cluster.running.watch
    watch.check()
    results = list(map(tuple, ClusterJob(cluster.spark, watch, tasks.collect, job.feed).wait()))
    if not any(ended for _, ended in results):
        _check_finished(cluster, job, {index for index, _ in results})
    return results


def _check_finished(cluster: Cluster, job: FeedJob, came: set[int]) -> None:
    """Raises NodeError where an attempt found no rows in a partition of which some were given.

    Partitions in `came` are complete: the task that sent them has said so. Their node may have
    ended before it could say so too.
    """
    watch, ledger = cluster.running.watch, cluster.ledger

    def gone() -> list[int]:
        return [index for index in ledger.unfinished(job.feed) if index not in came]

    if watch.wait(lambda: not gone(), _LAST_EVENTS_S):
        return
    watch.check()
    raise NodeError(
        f"partitions {gone()} had rows when they were first computed and have none now, so the "
        "rest of them is missing: give rows that Spark computes the same way each time, "
        "such as files or a checkpoint()"
    )


def inference(cluster: Cluster, rows: Any, timeout_s: float, queue: str, schema: Any) -> Any:
    """As Cluster.inference()."""
    if cluster.restarts is not None:
        cluster.restarts.ensure_running()
    spec = feed_spec(cluster.nodes, queue, timeout_s, mode="inference")
    if is_frame(rows):
        check_carried(rows.schema)
        return _infer_frame(rows, replace(spec, format="arrow"), schema)
    chunks, spec = _pickles(rows, spec)
    marked = cluster.running.inferences.mark(chunks)
    results = marked.mapPartitionsWithIndex(partial(_infer_pickles, spec))
    if schema is None:
        return results
    return cluster.spark.session.createDataFrame(results, schema)


def _infer_frame(rows: Any, spec: FeedSpec, schema: Any) -> Any:
    """A DataFrame of the results with a schema, else an RDD of them."""
    if schema is not None:
        # Spark's own reading of a schema: text or a type, a column "value" where it is no struct.
        kind = rows.sparkSession.createDataFrame([], schema).schema
        return map_in_arrow(rows, partial(_infer_columns, spec, kind), kind)
    if not hasattr(rows.sparkSession, "_jsc"):
        raise ValueError("Spark Connect has no RDDs: give inference() the schema of its results")
    pickled = map_in_arrow(rows, partial(_infer_batches, spec), "results binary")
    return pickled.rdd.mapPartitions(_unpickle_rows)


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
    return RDD(rows._jrdd, rows.ctx, NoOpSerializer()), replace(spec, batched=batched)


def _feed_pickles(
    spec: FeedSpec, index: int, chunks: Iterator[bytes]
) -> Iterator[tuple[int, bool]]:
    with told_to_driver():
        ended = feed(spec, index, batches_of_pickles(chunks))
    if ended is not None:
        yield index, ended


def _infer_pickles(spec: FeedSpec, index: int, chunks: Iterator[bytes]) -> Iterator[Any]:
    return _infer(spec, index, batches_of_pickles(chunks))


def _feed_batches(spec: FeedSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    index = partition_id()
    with told_to_driver():
        ended = feed(spec, index, _with_rows(batches))
    if ended is not None:
        columns = {"partition": pa.array([index], pa.int32()), "ended": pa.array([ended])}
        yield pa.record_batch(columns)


def _infer_batches(spec: FeedSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    results = _infer(spec, partition_id(), _with_rows(batches))
    for chunk in pickle_rows(results):
        yield pa.record_batch({"results": pa.array([chunk], pa.binary())})


def _infer_columns(
    spec: FeedSpec, kind: Any, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    from pyspark.sql.pandas.types import to_arrow_schema

    with told_to_driver():
        parts = infer(spec, partition_id(), _with_rows(batches))
        yield from result_columns(to_arrow_schema(kind), parts)


def _infer(spec: FeedSpec, index: int, batches: Iterator[Any]) -> Iterator[Any]:
    with told_to_driver():
        yield from infer_rows(spec, index, batches)


def _with_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)


def _unpickle_rows(rows: Iterator[Any]) -> Iterator[Any]:
    import pickle

    for row in rows:
        yield from pickle.loads(row.results)
