"""The driver's side of the feed: sends RDDs, DataFrames and streams to the nodes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.cluster.driver.feed_job import FeedJob
from hearth.cluster.driver.pace import PaceLine
from hearth.cluster.driver.watch import ClusterJob
from hearth.cluster.errors import NodeError, reported_to_driver
from hearth.cluster.feed_spec import FeedSpec, fed_nodes, feed_spec, feed_timeout_or_never
from hearth.cluster.task.feed_task import feed, infer, infer_rows
from hearth.errors import invalid
from hearth.rows.carried_types import check_carried
from hearth.rows.column_results import result_columns
from hearth.rows.pickles import batches_of_pickles, pickle_rows
from hearth.spark.arrow_map import map_in_arrow
from hearth.spark.task_resources import partition_id

if TYPE_CHECKING:
    import pyarrow as pa

    from hearth.cluster.driver.restart import Restarts
    from hearth.cluster.driver.start import ClusterStart
    from hearth.cluster.driver.watch import ClusterWatch

# Limit for Spark to count the rows after a loss, so that the failure is reported soon.
_COUNT_S = 6.0
# Nodes' last events may arrive this much later than the end of their Spark job.
_LAST_EVENTS_S = 10.0


def is_frame(rows: Any) -> bool:
    """Whether `rows` is a DataFrame. Tests the type, because instances of Spark Connect's DataFrame
    have every attribute, as a column."""
    return hasattr(type(rows), "mapInArrow")


def check_rows(rows: Any, call: str) -> None:
    """Raises TypeError or ValueError unless Spark can send these rows to nodes."""
    if is_frame(rows):
        if call == "train" and rows.isStreaming:
            raise invalid(
                "train() does not accept a streaming DataFrame: feed its batches by "
                "frame.writeStream.foreachBatch(lambda batch, _: cluster.train(batch)).start()"
            )
    elif not hasattr(rows, "_jrdd_deserializer") and not hasattr(rows, "foreachRDD"):
        kind = type(rows)
        raise TypeError(
            f"{call}() takes a DataFrame or an RDD of Spark, not a {kind.__module__}."
            f"{kind.__qualname__}: use spark.createDataFrame(...) or sc.parallelize(...)"
        )


@dataclass(frozen=True)
class RowSender:
    """The sender of rows to the nodes of one cluster. Thread-safe.

    Attributes:
        started: returns the cluster's latest start, with its nodes.
        restarts: resends rows after a restart; None: the cluster does not restart.
        stream_begins, stream_ends: called when a stream begins, and when a node needs no more of
            its rows.
    """

    spark: Any
    ledger: Any
    started: Callable[[], ClusterStart]
    restarts: Restarts | None
    stream_begins: Callable[[], Any]
    stream_ends: Callable[[], Any]

    def train(self, rows: Any, epochs: int, timeout_s: float, queue: str) -> None:
        """Feeds an RDD or DataFrame `epochs` times, or each RDD of a DStream."""
        check_rows(rows, "train")
        if not is_frame(rows) and hasattr(rows, "foreachRDD"):
            if self.restarts is not None:
                raise invalid(
                    "a DStream cannot be replayed, so it needs a cluster without restart=True; "
                    "use Structured Streaming's foreachBatch with restart=True"
                )
            self.stream_begins()
            rows.foreachRDD(lambda rdd: self._train_interval(rdd, timeout_s, queue))
            return
        if is_frame(rows):
            check_carried(rows.schema)
        self._watch.pace.begin()
        with PaceLine(lambda: self._watch.pace.line()):
            self._train_all(rows, epochs, timeout_s, queue)

    @property
    def _watch(self) -> ClusterWatch:
        return self.started().watch

    def _train_all(self, rows: Any, epochs: int, timeout_s: float, queue: str) -> None:
        if self.restarts is not None:
            rows, compare = self.spark.pin(rows), not self.spark.pins
            for _ in range(epochs):
                if self.restarts.send(FeedJob(rows, queue, timeout_s, compare=compare)):
                    return
        else:
            job = FeedJob(rows, queue, timeout_s, keep=epochs > 1)
            if not self._feed_once(job) and epochs > 1:
                self._replay(job, epochs - 1)

    def _train_interval(self, rdd: Any, timeout_s: float, queue: str) -> None:
        if self._feed_once(FeedJob(rdd, queue, timeout_s)):
            self.stream_ends()

    @contextmanager
    def _in_ledger(self, feed: str, loss: Callable[[], str]) -> Iterator[None]:
        """Opens a feed in the ledger during the block. If a process is lost, appends loss() to the
        error."""
        self.ledger.open(feed)
        try:
            yield
        except NodeError:
            watch = self._watch
            if watch.failure is not None and watch.failure.lost:
                watch.amend(loss())
                watch.check()
            raise
        finally:
            self.ledger.close(feed)

    def _feed_once(self, job: FeedJob) -> bool:
        """Feeds each row once; returns whether a node needs no more rows."""
        with self._in_ledger(job.feed, lambda: self._unconsumed(job)):
            return any(ended for _, ended in self.send(job))

    def _unconsumed(self, job: FeedJob) -> str:
        """Text with the number of rows that no node has consumed. Takes at most _COUNT_S."""
        counting = ClusterJob(self.spark, self._watch, job.rows.count)
        counting.join(_COUNT_S)
        counting.cancel()
        taken, rows = self.ledger.taken(job.feed), counting.result
        if rows is None:
            return f"{taken} rows were consumed; Spark could not count the others in {_COUNT_S:g} s"
        return f"{rows - taken} of {rows} rows were not consumed"

    def _replay(self, job: FeedJob, times: int) -> None:
        """Makes the nodes replay the rows of a job from their disks."""
        feed = secrets.token_hex(8)

        def loss() -> str:
            return f"{self.ledger.taken(feed)} rows of the {times} later epochs were consumed"

        with self._in_ledger(feed, loss):
            message = {"op": "replay", "queue": job.queue, "times": times, "feed": feed}
            running = self.started()
            running.broadcast({**message, "kept": job.feed})
            nodes = [node["executor_id"] for node in fed_nodes(running.nodes)]
            running.watch.wait_replayed(feed, nodes, feed_timeout_or_never(job.timeout_s))

    def send(self, job: FeedJob) -> list[tuple[int, bool]]:
        """Sends those partitions of a job that are not safe.

        Returns:
            For each non-empty partition, (its number, whether its node needs no more rows).

        Raises:
            NodeError: a node, or an executor, failed.
            FeedTimeoutError: a node consumed no rows in time.
        """
        running = self.started()
        spec = feed_spec(
            running.nodes,
            job.queue,
            job.timeout_s,
            feed=job.feed,
            keep=job.keep,
            fenced=True,
            safe=frozenset() if job.compare else frozenset(self.ledger.safe(job.feed)),
        )
        if is_frame(job.rows):
            task = partial(_feed_batches, replace(spec, format="arrow"))
            tasks = map_in_arrow(job.rows, task, "partition int, ended boolean")
        else:
            chunks, spec = _pickles(job.rows, spec)
            tasks = chunks.mapPartitionsWithIndex(partial(_feed_pickles, spec))
        watch = running.watch
        watch.check()
        results = list(map(tuple, ClusterJob(self.spark, watch, tasks.collect, job.feed).wait()))
        if not any(ended for _, ended in results):
            self._check_finished(watch, job.feed, {index for index, _ in results})
        return results

    def _check_finished(self, watch: ClusterWatch, feed: str, came: set[int]) -> None:
        """Raises NodeError if a partition was delivered only in part, and is empty when recomputed.

        `came`: partitions that their tasks have reported as completely sent; a node may have ended
        before it reported them.
        """

        def gone() -> list[int]:
            return [index for index in self.ledger.unfinished(feed) if index not in came]

        if watch.wait(lambda: not gone(), _LAST_EVENTS_S):
            return
        watch.check()
        raise NodeError(
            f"partitions {gone()} had rows when they were first computed, but are empty now, so "
            "the rest of their rows is missing: pass rows that Spark recomputes identically, "
            "such as files or a checkpoint()"
        )

    def inference(self, rows: Any, timeout_s: float, queue: str, schema: Any) -> Any:
        """The results of the nodes' programs for `rows`; see Cluster.inference()."""
        check_rows(rows, "inference")
        if self.restarts is not None:
            self.restarts.ensure_running()
        running = self.started()
        spec = feed_spec(running.nodes, queue, timeout_s, mode="inference")
        if is_frame(rows):
            check_carried(rows.schema)
            return _infer_frame(rows, replace(spec, format="arrow"), schema)
        chunks, spec = _pickles(rows, spec)
        marked = running.inferences.mark(chunks)
        results = marked.mapPartitionsWithIndex(partial(_infer_pickles, spec))
        if schema is None:
            return results
        return self.spark.session.createDataFrame(results, schema)


def _infer_frame(rows: Any, spec: FeedSpec, schema: Any) -> Any:
    """The results: with a schema as a DataFrame, else as an RDD."""
    if schema is not None:
        # Spark parses the schema, a text or a type; a type that is not a struct becomes a column
        # "value".
        kind = rows.sparkSession.createDataFrame([], schema).schema
        return map_in_arrow(rows, partial(_infer_columns, spec, kind), kind)
    if not hasattr(rows.sparkSession, "_jsc"):
        raise invalid("Spark Connect has no RDDs: pass the schema of the results to inference()")
    pickled = map_in_arrow(rows, partial(_infer_batches, spec), "results binary")
    return pickled.rdd.mapPartitions(_unpickle_rows)


def _pickles(rows: Any, spec: FeedSpec) -> tuple[Any, FeedSpec]:
    """An RDD of pickled rows: Spark's own pickles, if Spark stores the rows in that form.

    The feed task then does not unpickle them. If a Python function of the same stage computes the
    rows, they are objects in the task already, and are pickled in lists, as by Spark.
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
    with reported_to_driver():
        ended = feed(spec, index, batches_of_pickles(chunks))
    if ended is not None:
        yield index, ended


def _infer_pickles(spec: FeedSpec, index: int, chunks: Iterator[bytes]) -> Iterator[Any]:
    return _infer(spec, index, batches_of_pickles(chunks))


def _feed_batches(spec: FeedSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    index = partition_id()
    with reported_to_driver():
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

    with reported_to_driver():
        parts = infer(spec, partition_id(), _with_rows(batches))
        yield from result_columns(to_arrow_schema(kind), parts)


def _infer(spec: FeedSpec, index: int, batches: Iterator[Any]) -> Iterator[Any]:
    with reported_to_driver():
        yield from infer_rows(spec, index, batches)


def _with_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)


def _unpickle_rows(rows: Iterator[Any]) -> Iterator[Any]:
    import pickle

    for row in rows:
        yield from pickle.loads(row.results)
