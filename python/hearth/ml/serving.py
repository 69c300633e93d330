"""Nodes with devices, which serve the tasks of predict() on all executors.

A start job starts the nodes on the executors and leaves them running, as cluster.run() does. The
tasks of the job that computes the DataFrame read and prepare their rows, send them to a node's
feed, and join the results with the columns that stayed in the task.
"""

from __future__ import annotations

import atexit
import queue
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from hearth.cluster import roles
from hearth.cluster.driver.cluster import Cluster
from hearth.cluster.driver.plan import Plan
from hearth.cluster.errors import reported_to_driver
from hearth.cluster.feed_spec import FeedSpec, feed_spec
from hearth.cluster.task.feed_task import infer
from hearth.cluster.task.node_job import NodeOptions, NodeProgram
from hearth.errors import DeadlineExceededError
from hearth.ml import predictors
from hearth.ml.executor_prediction import Prediction
from hearth.rows.applied import of_rows, prepared
from hearth.rows.column_results import ColumnResults, wire_column
from hearth.rows.model_thread import in_model_thread, start_in_model_thread
from hearth.rows.predict_rows import WaitingRows
from hearth.spark.gpu_profiles import gpu_profiles
from hearth.spark.task_resources import partition_id

if TYPE_CHECKING:
    import numpy as np

    from hearth.cluster.node.context import NodeContext

_FEED = "predict"
# Number of tasks that a node serves at the same time; further tasks wait until one of them ends.
_TASKS = 64
# How long a task waits for results, because the node may be serving other tasks, or Spark may be
# slow to compute rows. The end of a node is detected at once, a hung program after _HUNG_S without
# a heartbeat, and a model that does not return after _CALL_S, except in its first call, which may
# compile the model.
_TIMEOUT_S = 3600.0
_BEAT_S, _HUNG_S, _CALL_S = 5.0, 60.0, 600.0

_lock = threading.Lock()
_clusters: dict[tuple[Any, ...], Cluster] = {}  # by (session, model, batch size, devices)


def task_of(
    session: Any, spec: Prediction, devices: int, made: pa.Schema
) -> tuple[Any, dict[str, Any]]:
    """The task for mapInArrow(), and its options. Starts nodes if there are none for this model.
    Each node's task gets a GPU if executors have GPUs; tasks that read rows get none.

    Raises:
        HearthError, ClusterError: the nodes do not start.
    """
    profiles = gpu_profiles(session)
    with _lock:
        cluster = _running(session, spec, devices, profiles.each)
    nodes = feed_spec(
        cluster.nodes, _FEED, _TIMEOUT_S, mode="inference", format="arrow", beat_s=_HUNG_S
    )
    without_model = replace(spec, program=replace(spec.program, model=b""))
    options = {} if profiles.none is None else {"profile": profiles.none}
    return partial(served, nodes, without_model, made), options


def release() -> None:
    """Ends all nodes; never raises."""
    with _lock:
        for cluster in _clusters.values():
            cluster.end()
        _clusters.clear()


atexit.register(release)


def _running(session: Any, spec: Prediction, devices: int, profile: Any) -> Cluster:
    where = session.sparkContext.applicationId if hasattr(session, "_jsc") else id(session.client)
    key = (where, spec.program.key, spec.batch_size, devices)
    for known, cluster in list(_clusters.items()):
        running = cluster.running
        ended = running is None or running.watch.failure is not None or running.watch.lost_feeds
        if known[0] != where or ended:  # the cluster is of an earlier session, or a node has failed
            cluster.end()
            del _clusters[known]
    if key not in _clusters:
        template = roles.template_of({"worker": devices})
        options = NodeOptions(queues=(_FEED,), background=True)
        # Nodes hold no cores, because the tasks that read rows need them.
        cluster = Cluster(session, Plan(template, options, profile=profile, holds=False))
        cluster.start(NodeProgram(serve, (spec.program, spec.batch_size)))
        _clusters[key] = cluster
    return _clusters[key]


def serve(args: tuple[predictors.Program, int], ctx: NodeContext) -> None:
    """A node's main function: serves tasks until the cluster ends.

    Each task has a thread that reads its rows and sends its results; the model computes for one
    task at a time.
    """
    program, batch_size = args
    loading = start_in_model_thread(partial(predictors.predictor_of, program))
    while not wait([loading], timeout=_BEAT_S).done:
        ctx.mgr.beat()
    server = _Server(loading.result(), program.outputs, batch_size)
    for number in range(_TASKS):
        name = f"hearth-predict-{number}"
        threading.Thread(target=server.run, args=(ctx,), name=name, daemon=True).start()
    left = _TASKS
    while left:
        try:
            error = server.ended.get(timeout=_BEAT_S)
        except queue.Empty:
            server.check()
            ctx.mgr.beat()
            continue
        if error is not None:
            raise error
        left -= 1


class _Server:
    def __init__(self, predictor: predictors.Predictor, outputs: tuple[str, ...], batch_size: int):
        self._predictor = predictor
        self._outputs = outputs
        self._batch_size = batch_size
        self._began: float | None = None  # start of the model's current call
        self._limit_s = _TIMEOUT_S
        self.ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run(self, ctx: NodeContext) -> None:
        """Serves one task after the other."""
        try:
            feed = ctx.get_data_feed(train_mode=False, qname_in=_FEED)
            while not feed.should_stop():
                arrays = feed.next_numpy(self._batch_size)
                if arrays is not None:
                    feed.batch_results(self._results(arrays))
            self.ended.put(None)
        except BaseException as error:
            self.ended.put(error)

    def check(self) -> None:
        """Raises TimeoutError if the model hangs."""
        began = self._began
        if began is not None and time.monotonic() - began > self._limit_s:
            raise DeadlineExceededError(
                f"the model has not returned from a call for {self._limit_s:g} s, so this node is "
                "considered hung: reduce batch_size if a call takes this long"
            )

    def _call(self, arrays: dict[str, Any]) -> list[np.ndarray]:
        self._began = time.monotonic()
        try:
            return self._predictor(arrays)
        finally:
            self._began, self._limit_s = None, _CALL_S

    def _results(self, arrays: dict[str, Any]) -> ColumnResults | None:
        """The outputs; or for invalid values the error, which the task raises."""
        try:
            found = in_model_thread(partial(self._call, arrays))
            return ColumnResults.of(dict(zip(self._outputs, found, strict=True)))
        except (TypeError, ValueError) as error:
            return ColumnResults.error(str(error), len(next(iter(arrays.values()))))


def served(
    nodes: FeedSpec, spec: Prediction, made: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yields each batch's kept columns and the results of a node's model.

    A thread reads, prepares and sends rows. The thread waits while the node cannot keep up, or
    while Spark does not consume the results.
    """
    partition, before = partition_id(), 0
    rows = WaitingRows(spec.kept, made, partition, least=2 * spec.batch_size)
    sent = _sent(spec, partition, rows.through(batches))
    try:
        with reported_to_driver():
            for part in infer(nodes, partition, sent):
                with of_rows(partition, before, len(part)):
                    found = cast(ColumnResults, part).arrays()
                before += len(part)
                yield from rows.with_results([found[name] for name in made.names])
        rows.check_none()
    finally:
        rows.close()
        with suppress(ValueError):  # the thread that reads `sent` is still running
            sent.close()


def _sent(
    spec: Prediction, partition: int, batches: Iterator[pa.RecordBatch]
) -> Generator[pa.RecordBatch, None, None]:
    prepare = partial(predictors.preparer_of, spec.program)
    for inputs, _ in prepared(spec.columns(), partition, batches, prepare):
        columns = {name: wire_column(array) for name, array in inputs.items()}
        yield pa.RecordBatch.from_pydict(columns)
