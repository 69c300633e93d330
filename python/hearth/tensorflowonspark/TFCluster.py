"""Starts a TensorFlow cluster on a Spark application's executors, feeds it and shuts it down.

cluster = TFCluster.run(sc, main_fun, args, num_executors=4, num_ps=0,
                        input_mode=TFCluster.InputMode.SPARK)
cluster.train(rdd, num_epochs=2)
cluster.shutdown()
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hearth.cluster.driver.cluster import Cluster
from hearth.cluster.driver.plan import Plan
from hearth.cluster.errors import ClusterError, NodeError
from hearth.errors import invalid
from hearth.tensorflowonspark import TFSparkNode
from hearth.tensorflowonspark.roles import make_template

logger = logging.getLogger(__name__)

# TensorFlowOnSpark's error status, for programs that read it. Always empty: failures are raised.
tf_status: dict[str, Any] = {}

# If set to 1, a failure in run() or shutdown() ends the driver as in TensorFlowOnSpark:
# SystemExit(1).
EXIT_VARIABLE = "TFOS_EXIT_ON_FAILURE"


class InputMode:
    """Whether nodes read files themselves, or Spark feeds them."""

    TENSORFLOW = 0
    SPARK = 1


def _upstreams(name: str) -> property:
    """A Cluster's attribute under TensorFlowOnSpark's name."""
    return property(lambda self: getattr(self, name))


class TFCluster(Cluster):
    """A running cluster, returned by run(). Thread-safe; `with` ends it."""

    # Programs may look for these names in the class; instances replace the values.
    input_mode: int | None = None
    queues: Sequence[str] = ()
    server: Any = None
    cluster_info = _upstreams("nodes")
    cluster_meta = _upstreams("meta")
    nodeRDD = _upstreams("node_tasks")
    sc = property(lambda self: self.spark.handle)
    num_executors = property(lambda self: self.meta["num_executors"])
    cluster_id = property(lambda self: self.meta["id"])
    defaultFS = property(lambda self: self.meta["default_fs"])
    working_dir = property(lambda self: self.meta["working_dir"])

    def __init__(self, sc: Any, plan: Plan, input_mode: int, queues: Sequence[str]):
        """Starts nothing yet; `queues`: the names passed to run()."""
        super().__init__(sc, plan)
        self.input_mode = input_mode
        self.queues = list(queues)

    def train(
        self, dataRDD: Any, num_epochs: int = 0, feed_timeout: float = 600, qname: str = "input"
    ) -> None:
        """Feeds all rows to the nodes; returns when they are consumed.

        Args:
            dataRDD: an RDD, a DataFrame (sent in columns), or a DStream (returns at once).
            num_epochs: number of passes over the rows; 0 means 10. In later epochs the nodes replay
                the rows from their disks, unless the cluster may restart.
            feed_timeout: seconds for which a node may take no rows; -1: no limit.
            qname: the feed.

        Raises: as Cluster.train().
        """
        assert self.input_mode == InputMode.SPARK, "TFCluster.train() requires InputMode.SPARK"
        assert qname in self.queues, f"Unknown queue: {qname}"
        assert num_epochs >= 0, "num_epochs cannot be negative"
        super().train(dataRDD, num_epochs or 10, feed_timeout, qname)

    def inference(  # type: ignore[override]  # upstream's positional arguments
        self, dataRDD: Any, feed_timeout: float = 600, qname: str = "input", *, schema: Any = None
    ) -> Any:
        """The nodes' results, one per row and in order within each partition; computed lazily.

        Args:
            dataRDD: an RDD or a DataFrame (sent in columns).
            feed_timeout: seconds for which no result may arrive; -1: no limit.
            qname: the feed.
            schema: schema of the results, which are then returned as a DataFrame; required with
                Spark Connect.

        Returns:
            An RDD of the results, or a DataFrame.
        """
        assert self.input_mode == InputMode.SPARK, "TFCluster.inference() requires InputMode.SPARK"
        assert qname in self.queues, f"Unknown queue: {qname}"
        return super().inference(dataRDD, feed_timeout, qname, schema)

    def shutdown(self, ssc: Any = None, grace_secs: float = 0, timeout: float = 259200) -> None:
        """Ends the feeds, waits until all main functions have returned, and ends the cluster.

        Thread-safe; later calls only raise the same failure.

        Args:
            ssc: a StreamingContext, which is stopped first, once a stop of the cluster is
                requested.
            grace_secs: seconds for ps and evaluator to end by themselves after the workers.
            timeout: seconds for the whole shutdown; -1: no limit.

        Raises: as Cluster.shutdown().
        """
        with _exit_if_asked():
            super().shutdown(ssc, grace_secs, timeout)


def run(
    sc: Any,
    map_fun: Callable[..., Any],
    tf_args: Any,
    num_executors: int,
    num_ps: int,
    tensorboard: bool = False,
    input_mode: int = InputMode.TENSORFLOW,
    log_dir: str | None = None,
    driver_ps_nodes: bool = False,
    master_node: str | None = None,
    reservation_timeout: float = 600,
    queues: Sequence[str] = ["input", "output", "error"],
    eval_node: bool = False,
    release_port: bool = True,
    *,
    restart: bool = False,
) -> TFCluster:
    """Starts a cluster: one node per element of the start job; returns when all nodes have started.

    Args:
        sc: the SparkContext, or a SparkSession (Spark Connect: DataFrames only).
        map_fun: the main function, map_fun(tf_args, ctx), run by every node.
        tf_args: map_fun's first argument; a list becomes the node's sys.argv.
        num_executors: number of nodes of all roles.
        num_ps: number of parameter servers among them.
        tensorboard: whether to start TensorBoard on the first worker.
        input_mode: whether nodes read files, or Spark feeds them.
        log_dir: TensorBoard's log directory.
        driver_ps_nodes: run the parameter servers on the driver's host (InputMode.TENSORFLOW).
        master_node: role name of one node, "chief" or "master"; sets TF_CONFIG.
        reservation_timeout: seconds for all nodes to start.
        queues: names of the feeds; "output" and "error" exist for programs that name them.
        eval_node: make one node the evaluator (InputMode.TENSORFLOW).
        release_port: free each node's port before map_fun runs; False: ctx.release_port() does.
        restart: if an executor is lost, or a node is killed by SIGKILL, train() and shutdown()
            start all nodes again, with ctx.restart_count one higher, and send again all rows that
            are not safe (see DataFeed.commit). main_fun resumes from its own checkpoint.

    Raises:
        AssertionError: the roles do not add up to num_executors.
        ReservationTimeoutError: not all nodes started; names them, with possible reasons.
        NodeError: a node failed while it started.
    """
    background = input_mode == InputMode.SPARK
    if background:
        _refuse_unfed_nodes(driver_ps_nodes, eval_node)
    options = TFSparkNode.node_options(tf_args, queues, background)
    plan = Plan(
        template=make_template(num_executors, num_ps, master_node, eval_node),
        options=replace(options, tensorboard=bool(tensorboard), log_dir=log_dir),
        beside_driver=frozenset(range(num_ps if driver_ps_nodes else 0)),
        release_port=release_port,
        restart=restart,
        timeout_s=reservation_timeout,
    )
    cluster = TFCluster(sc, plan, input_mode, queues)
    with _exit_if_asked():
        cluster.start(TFSparkNode.node_program(map_fun, tf_args))
    return cluster


def _refuse_unfed_nodes(driver_ps_nodes: bool, eval_node: bool) -> None:
    if driver_ps_nodes or eval_node:
        raise invalid(
            "driver_ps_nodes and eval_node need InputMode.TENSORFLOW: with InputMode.SPARK such "
            "nodes would get no rows"
        )


@contextmanager
def _exit_if_asked() -> Iterator[None]:
    """Turns a ClusterError into SystemExit(1) if $TFOS_EXIT_ON_FAILURE is set."""
    try:
        yield
    except ClusterError as error:
        if os.environ.get(EXIT_VARIABLE) != "1":
            raise
        logger.error("%s", error)
        raise SystemExit(1) from error


__all__ = ["ClusterError", "InputMode", "NodeError", "TFCluster", "run", "tf_status"]
