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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hearth.tensorflowonspark import TFSparkNode, cluster_feed, reservation, roles
from hearth.tensorflowonspark.cluster_restart import Restarts
from hearth.tensorflowonspark.cluster_start import ClusterStart
from hearth.tensorflowonspark.cluster_watch import SparkJob
from hearth.tensorflowonspark.errors import ClusterError, NodeError
from hearth.tensorflowonspark.feed_ledger import Ledger
from hearth.tensorflowonspark.spark_access import spark_access

logger = logging.getLogger(__name__)

# Kept for programs that look here; failures are raised, so nothing is ever set.
tf_status: dict[str, Any] = {}

# Set to 1, run() and shutdown() end a failed driver as TensorFlowOnSpark does: SystemExit(1).
EXIT_VARIABLE = "TFOS_EXIT_ON_FAILURE"


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
        self.spark: Any = None  # see spark_access
        self.running: ClusterStart | None = None
        self.restarts: Restarts | None = None
        self.ledger = Ledger()
        self.node_ids: list[int] = []  # of the nodes that Spark starts
        self.body: Any = None  # what starts one
        self.reservation_timeout = 0.0
        self._shutdown_lock = threading.Lock()
        self._ended = False
        self._error: BaseException | None = None

    def launch(self) -> None:
        """Starts all nodes; raises what run() does."""
        self.running = ClusterStart(
            self.cluster_meta, self.spark, self.reservation_timeout, self.ledger
        )
        beside = [i for i in range(self.num_executors) if i not in self.node_ids]
        self.running.launch(self.nodeRDD, self.body, beside)
        self.cluster_info = self.running.wait_nodes()
        for node in self.cluster_info:
            name = f"{node['job_name']}:{node['task_index']}"
            logger.info("node %s on %s", name, node["host_name"])

    def train(self, dataRDD, num_epochs=0, feed_timeout=600, qname="input"):
        """Feeds all rows to the nodes; returns when they are used up.

        Args:
            dataRDD: an RDD, a DataFrame (columnar all the way), or a DStream (returns at once).
            num_epochs: how often each row is given; 0 means 10. Later epochs are replayed by the
                nodes from their disks, unless the cluster may start again.
            feed_timeout: seconds that a node may take no rows; -1: no limit.
            qname: the feed.

        Raises:
            NodeError: a node failed; within seconds, with its traceback or signal. Where its
                executor was lost, with the number of rows that were not consumed.
            FeedTimeoutError: a node took no rows for `feed_timeout`.
            ValueError: a DStream for a cluster that may start again.
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
            schema: of the results, which then come as a DataFrame; Spark Connect needs one.

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
        with self._shutdown_lock, _exit_if_asked():
            if not self._ended:
                try:
                    self._shutdown(ssc, grace_secs, timeout)
                except BaseException as error:
                    self._error = error
                    raise
                finally:
                    self._ended = True
                    self.end()
            elif self._error is not None:
                raise self._error

    def _shutdown(self, ssc: Any, grace_secs: float, timeout: float) -> None:
        until = time.monotonic() + timeout

        def wait(nodes: Sequence[int], who: str) -> None:
            left = None if timeout < 0 else max(0.0, until - time.monotonic())
            if not self.running.watch.wait_done(nodes, left):
                self.running.watch.check()
                raise ClusterError(f"the cluster's {who} did not end within {timeout:g} s")

        if ssc is not None:
            self._stop_streaming(ssc)
        while True:
            running = self.running
            try:
                self._wait_for_nodes(running, grace_secs, wait)
                return
            except NodeError as error:
                if self.restarts is None:
                    raise
                self.restarts.recover(running, error)

    def _wait_for_nodes(
        self, running: ClusterStart, grace_secs: float, wait: Callable[[Sequence[int], str], None]
    ) -> None:
        """Lets all nodes of this start come to their end."""
        if self.input_mode == InputMode.SPARK:
            running.broadcast({"op": "end"})
        template = self.cluster_meta["cluster_template"]
        fed = roles.fed_ids(template)
        wait(fed, "workers")
        others = [i for ids in template.values() for i in ids if i not in fed]
        if others:
            running.watch.wait_done(others, grace_secs)
            running.watch.check()
            running.broadcast({"op": "stop"})
            wait(others, "ps or evaluator")
        running.watch.check()
        running.job.wait()

    def _stop_streaming(self, ssc: Any) -> None:
        """Waits until the cluster is asked to stop, or failed; then stops the stream."""
        while not self.server.wait_done(1.0) and self.running.watch.failure is None:
            if ssc.awaitTerminationOrTimeout(0.0):
                return
        ssc.stop(stopSparkContext=False, stopGraceFully=self.running.watch.failure is None)

    def end(self) -> None:
        """Ends every process and job that is left; never raises."""
        if self.running is not None:
            self.running.close()
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
        self.end()

    def feed_job(self, feed: str, action: Any) -> Any:
        """Runs a Spark action that ends as soon as the cluster fails or its feed is stuck."""
        self.running.watch.check()
        return SparkJob(self.spark, self.running.watch, action, feed).wait()

    def replay(self, kept: cluster_feed.FeedJob, times: int, feed: str) -> None:
        """Lets the nodes take the rows that they kept of a job `times` more; waits for it."""
        message = {"op": "replay", "queue": kept.queue, "times": times, "feed": feed}
        self.running.broadcast({**message, "kept": kept.feed})
        nodes = roles.fed_ids(self.cluster_meta["cluster_template"])
        seconds = TFSparkNode.feed_timeout_or_never(kept.timeout_s)
        self.running.watch.wait_replayed(feed, nodes, seconds)


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
    *,
    restart=False,
):
    """Starts a cluster: one node per element of the start job; returns when all are there.

    Args:
        sc: the SparkContext, or a SparkSession (Spark Connect: DataFrames only).
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
        restart: where an executor is lost, train() and shutdown() start all nodes again, with
            ctx.restart_count one higher, and bring all rows again that are not safe (see
            DataFeed.commit). main_fun goes on from its own checkpoint.

    Raises:
        AssertionError: the roles do not add up to num_executors.
        ReservationTimeoutError: not all nodes came; says which, and why that may be.
        NodeError: a node failed while it started.
    """
    template = roles.make_template(num_executors, num_ps, master_node, eval_node)
    background = input_mode == InputMode.SPARK
    if background:
        _refuse_unfed_nodes(driver_ps_nodes, eval_node)
    cluster = _new_cluster(sc, template, num_executors, release_port)
    cluster.input_mode, cluster.queues = input_mode, list(queues)
    cluster.node_ids = list(range(num_ps if driver_ps_nodes else 0, num_executors))
    cluster.nodeRDD = cluster.spark.nodes(cluster.node_ids)
    cluster.reservation_timeout = reservation_timeout
    cluster.restarts = Restarts(cluster) if restart else None
    cluster.body = TFSparkNode.run(
        map_fun, tf_args, cluster.cluster_meta, tensorboard, log_dir, queues, background
    )
    with _exit_if_asked(), _end_on_error(cluster):
        cluster.launch()
    return cluster


def _refuse_unfed_nodes(driver_ps_nodes: bool, eval_node: bool) -> None:
    if driver_ps_nodes or eval_node:
        raise ValueError(
            "driver_ps_nodes and eval_node need InputMode.TENSORFLOW: with InputMode.SPARK such "
            "nodes would get no rows"
        )


class ClusterMeta(dict):  # type: ignore[type-arg]
    """What TFCluster.cluster_meta is: its "server_addr" opens the server when it is asked for."""

    def __init__(self, start_server: Callable[[], tuple[str, int]]):
        super().__init__()
        self._start_server = start_server

    def __missing__(self, key: str) -> Any:
        if key != "server_addr":
            raise KeyError(key)
        self[key] = self._start_server()
        logger.info("listening for reservations at %s", self[key])
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        """As a dict's, but for the server's address."""
        return self[key] if key == "server_addr" else super().get(key, default)

    def __reduce__(self) -> Any:
        """To tasks it goes as a plain dict."""
        return dict, (dict(self),)


@contextmanager
def _end_on_error(cluster: TFCluster) -> Iterator[None]:
    try:
        yield
    except BaseException:
        cluster.end()
        raise


def _new_cluster(sc: Any, template: Any, num_executors: int, release_port: bool) -> TFCluster:
    """A cluster without nodes, whose server listens."""
    cluster = TFCluster()
    cluster.spark = spark_access(sc)
    cluster.sc = cluster.spark.handle
    cluster.defaultFS = cluster.spark.default_fs()
    cluster.working_dir = os.getcwd()
    cluster.num_executors = num_executors
    cluster.cluster_id = random.getrandbits(64)
    cluster.server = reservation.Server(num_executors, hosts=cluster.spark.coordinator_hosts())
    cluster.cluster_meta = cluster.meta = ClusterMeta(cluster.server.start)
    cluster.meta |= {
        "id": cluster.cluster_id,
        "cluster_template": template,
        "num_executors": num_executors,
        "default_fs": cluster.defaultFS,
        "working_dir": cluster.working_dir,
        "release_port": release_port,
        "restart_count": 0,
    }
    return cluster


@contextmanager
def _exit_if_asked() -> Iterator[None]:
    """Turns a ClusterError into SystemExit(1) where $TFOS_EXIT_ON_FAILURE asks for it."""
    try:
        yield
    except ClusterError as error:
        if os.environ.get(EXIT_VARIABLE) != "1":
            raise
        logger.error("%s", error)
        raise SystemExit(1) from error


__all__ = ["ClusterError", "InputMode", "NodeError", "TFCluster", "run", "tf_status"]
