"""Starts a TensorFlow cluster on a Spark application's executors, feeds it and ends it.

cluster = TFCluster.run(sc, main_fun, args, num_executors=4, num_ps=0,
                        input_mode=TFCluster.InputMode.SPARK)
cluster.train(rdd, num_epochs=2)
cluster.shutdown()
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from typing import Any

from hearth.tensorflowonspark import TFSparkNode, cluster_feed, reservation, roles
from hearth.tensorflowonspark.cluster_start import ClusterStart
from hearth.tensorflowonspark.cluster_watch import SparkJob
from hearth.tensorflowonspark.errors import ClusterError, NodeError

logger = logging.getLogger(__name__)

# Kept for programs that look here; failures are raised, so nothing is ever set.
tf_status: dict[str, Any] = {}

# A job of a failed cluster gets this long to end after it was cancelled.
_CANCEL_WAIT_S = 5.0


class InputMode:
    """Who brings the data: the nodes read files themselves, or Spark feeds them."""

    TENSORFLOW = 0
    SPARK = 1


class TFCluster:
    """A running cluster, as run() made it. Any thread may use it; `with` ends it."""

    sc = None
    defaultFS = None
    working_dir = None
    num_executors = None
    nodeRDD = None
    cluster_id = None
    cluster_info = None
    cluster_meta = None
    meta = None
    input_mode = None
    queues = None
    server = None

    def __init__(self) -> None:
        self._start: ClusterStart | None = None
        self._shutdown_lock = threading.Lock()
        self._ended = False
        self._error: BaseException | None = None

    def train(self, dataRDD, num_epochs=0, feed_timeout=600, qname="input"):
        """Feeds all rows to the nodes; returns when they are used up.

        Args:
            dataRDD: an RDD, a DataFrame (columnar all the way), or a DStream (returns at once).
            num_epochs: how often each row is given; 0 means 10. Later epochs are replayed by the
                nodes from their disks.
            feed_timeout: seconds that a node may take no rows; -1: no limit.
            qname: the feed.

        Raises:
            NodeError: a node failed; within seconds, with its traceback or signal.
            FeedTimeoutError: a node took no rows for `feed_timeout`.
        """
        assert self.input_mode == InputMode.SPARK, "TFCluster.train() requires InputMode.SPARK"
        assert qname in self.queues, f"Unknown queue: {qname}"
        assert num_epochs >= 0, "num_epochs cannot be negative"
        cluster_feed.train(self, dataRDD, num_epochs or 10, feed_timeout, qname)

    def inference(self, dataRDD, feed_timeout=600, qname="input", *, schema=None):
        """The nodes' results, one per row and in order within each partition; lazily.

        Args:
            dataRDD: an RDD or a DataFrame (columnar on its way to the nodes).
            feed_timeout: seconds without any result; -1: no limit.
            qname: the feed.
            schema: of the results, which then come as a DataFrame.

        Returns:
            An RDD of the results, or a DataFrame.
        """
        assert self.input_mode == InputMode.SPARK, "TFCluster.inference() requires InputMode.SPARK"
        assert qname in self.queues, f"Unknown queue: {qname}"
        return cluster_feed.inference(self, dataRDD, feed_timeout, qname, schema)

    def shutdown(self, ssc=None, grace_secs=0, timeout=259200):
        """Ends the feeds, waits until all main functions have returned, and ends the cluster.

        Any thread may call it, and again: it does nothing then, but raises the same failure.

        Args:
            ssc: a StreamingContext, which is stopped first, once the cluster was asked to stop.
            grace_secs: seconds that ps and evaluator get to end by themselves after the workers.
            timeout: seconds for all of it; -1: no limit.

        Raises:
            NodeError: a node failed, perhaps long before.
            ClusterError: the nodes did not end in time; they are killed.
        """
        with self._shutdown_lock:
            if not self._ended:
                try:
                    self._shutdown(ssc, grace_secs, timeout)
                except BaseException as error:
                    self._error = error
                    raise
                finally:
                    self._ended = True
                    self._end()
            elif self._error is not None:
                raise self._error

    def _shutdown(self, ssc: Any, grace_secs: float, timeout: float) -> None:
        start = self._start
        assert start is not None
        deadline = None if timeout < 0 else time.monotonic() + timeout

        def left() -> float | None:
            return None if deadline is None else max(0.0, deadline - time.monotonic())

        if ssc is not None:
            self._stop_streaming(ssc)
        if self.input_mode == InputMode.SPARK:
            start.coordinator.broadcast('{"op": "end"}')
        template = self.cluster_meta["cluster_template"]
        fed = roles.fed_ids(template)
        if not start.watch.wait_done(fed, left()):
            start.watch.check()
            raise ClusterError(f"the cluster's workers did not end within {timeout} s")
        others = [i for ids in template.values() for i in ids if i not in fed]
        if others:
            start.watch.wait_done(others, grace_secs)
            start.watch.check()
            start.coordinator.broadcast('{"op": "stop"}')
            if not start.watch.wait_done(others, left()):
                start.watch.check()
                raise ClusterError(f"the cluster's ps or evaluator did not end within {timeout} s")
        start.watch.check()
        start.job.wait()

    def _stop_streaming(self, ssc: Any) -> None:
        """Waits until the cluster is asked to stop, or failed; then stops the stream."""
        while not self.server.wait_done(1.0) and self._start.watch.failure is None:
            if ssc.awaitTerminationOrTimeout(0.0):
                return
        ssc.stop(stopSparkContext=False, stopGraceFully=self._start.watch.failure is None)

    def _end(self) -> None:
        """Ends every process and job that is left; never raises."""
        start = self._start
        assert start is not None
        start.close()
        if self.server is not None:
            self.server.stop()

    def tensorboard_url(self):
        """ "http://host:port" of the cluster's TensorBoard; None where there is none."""
        for node in self.cluster_info:
            if node["tb_port"] != 0:
                return f"http://{node['host']}:{node['tb_port']}"
        return None

    def __enter__(self) -> TFCluster:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, _: object) -> None:
        if error is None:
            self.shutdown()
            return
        self._ended, self._error = True, error
        self._end()

    def feed_job(self, feed: str, action: Any) -> Any:
        """Runs a Spark action that ends as soon as the cluster fails or its feed is stuck."""
        self._start.watch.check()
        return SparkJob(self.sc, self._start.watch, action, feed).wait()

    def mark_inference(self, rdd: Any) -> Any:
        """The RDD, whose jobs end as soon as the cluster fails."""
        return self._start.inferences.mark(rdd)

    def replay(self, qname: str, times: int, feed_timeout: float) -> None:
        """Lets the nodes take the rows that they kept `times` more; waits until they have."""
        feed = f"{random.getrandbits(64):x}"
        self._start.broadcast({"op": "replay", "queue": qname, "times": times, "feed": feed})
        nodes = roles.fed_ids(self.cluster_meta["cluster_template"])
        seconds = TFSparkNode.feed_timeout_or_never(feed_timeout)
        self._start.watch.wait_replayed(feed, nodes, seconds)


def run(
    sc,
    map_fun,
    tf_args,
    num_executors,
    num_ps,
    tensorboard=False,
    input_mode=InputMode.TENSORFLOW,
    log_dir=None,
    driver_ps_nodes=False,
    master_node=None,
    reservation_timeout=600,
    queues=["input", "output", "error"],  # noqa: B006 (the API's default; it is not changed)
    eval_node=False,
    release_port=True,
):
    """Starts a cluster: one node per element of the start job; returns when all are there.

    Args:
        sc: the SparkContext, or a SparkSession.
        map_fun: the main function, map_fun(tf_args, ctx), run by every node.
        tf_args: its first argument; a list becomes the node's sys.argv.
        num_executors: nodes of all roles together.
        num_ps: how many of them are parameter servers.
        tensorboard: whether to start TensorBoard beside the first worker.
        input_mode: who brings the data.
        log_dir: what TensorBoard shows.
        driver_ps_nodes: run the parameter servers on the driver's host (InputMode.TENSORFLOW).
        master_node: role name of one node, "chief" or "master"; sets TF_CONFIG.
        reservation_timeout: seconds for all nodes to come.
        queues: names of the feeds; "output" and "error" are kept for programs that name them.
        eval_node: make one node the evaluator (InputMode.TENSORFLOW).
        release_port: free each node's port just before map_fun; else ctx.release_port() does.

    Raises:
        AssertionError: the roles do not add up to num_executors.
        ReservationTimeoutError: not all nodes came; says which, and why that may be.
        NodeError: a node failed while it started.
    """
    context = getattr(sc, "sparkContext", sc)
    template = roles.make_template(num_executors, num_ps, master_node, eval_node)
    if input_mode == InputMode.SPARK and (driver_ps_nodes or eval_node):
        raise ValueError(
            "driver_ps_nodes and eval_node need InputMode.TENSORFLOW: with InputMode.SPARK such "
            "nodes would get no rows"
        )
    cluster = TFCluster()
    cluster.sc = context
    cluster.defaultFS = default_fs(context)
    cluster.working_dir = os.getcwd()
    cluster.num_executors = num_executors
    cluster.cluster_id = random.getrandbits(64)
    cluster.input_mode = input_mode
    cluster.queues = list(queues)
    cluster.server = reservation.Server(num_executors)
    cluster.cluster_meta = cluster.meta = {
        "id": cluster.cluster_id,
        "cluster_template": template,
        "num_executors": num_executors,
        "default_fs": cluster.defaultFS,
        "working_dir": cluster.working_dir,
        "server_addr": cluster.server.start(),
        "release_port": release_port,
    }
    ids = list(range(num_ps if driver_ps_nodes else 0, num_executors))
    cluster.nodeRDD = context.parallelize(ids, len(ids))
    cluster._start = ClusterStart(cluster.cluster_meta, context, reservation_timeout)
    background = input_mode == InputMode.SPARK
    body = TFSparkNode.run(
        map_fun, tf_args, cluster.cluster_meta, tensorboard, log_dir, queues, background
    )
    try:
        cluster._start.launch(cluster.nodeRDD, body, range(ids[0]))
        cluster.cluster_info = cluster._start.wait_nodes()
    except BaseException:
        cluster._end()
        raise
    for node in cluster.cluster_info:
        logger.info("node %s:%s on %s", node["job_name"], node["task_index"], node["host_name"])
    return cluster


def default_fs(context: Any) -> str:
    """`fs.defaultFS` without the slashes of a bare file:///."""
    uri = context._jsc.hadoopConfiguration().get("fs.defaultFS")
    return uri[:-1] if uri.startswith("file://") and len(uri) > 7 and uri.endswith("/") else uri


__all__ = ["ClusterError", "InputMode", "NodeError", "TFCluster", "run", "tf_status"]
