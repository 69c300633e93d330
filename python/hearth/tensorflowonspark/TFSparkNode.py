"""The parts of a cluster that run in Spark's tasks: start a node, feed it, end the feed.

Each function returns the body of a mapPartitions or foreachPartition, as TFCluster uses it.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hearth.task_resources import task_gpus
from hearth.tensorflowonspark import TFNode, roles

logger = logging.getLogger(__name__)


class TFNodeContext:
    """What a main function knows of its node and cluster."""

    def __init__(
        self,
        executor_id=0,
        job_name="",
        task_index=0,
        cluster_spec={},  # noqa: B006 (the API's default; it is not changed)
        defaultFS="file://",
        working_dir=".",
        mgr=None,
        tmp_socket=None,
    ):
        self.worker_num = executor_id
        self.executor_id = executor_id
        self.job_name = job_name
        self.task_index = task_index
        self.cluster_spec = cluster_spec
        self.num_workers = sum(
            len(nodes) for role, nodes in cluster_spec.items() if role not in roles.FED_ROLES_EXCEPT
        )
        self.defaultFS = defaultFS
        self.working_dir = working_dir
        self.mgr = mgr
        self.tmp_socket = tmp_socket
        self.restart_count = 0  # how often the cluster has started again, see TFCluster.run

    def absolute_path(self, path):
        """See TFNode.hdfs_path."""
        return TFNode.hdfs_path(self, path)

    def start_cluster_server(self, num_gpus=1, rdma=False):
        """See TFNode.start_cluster_server."""
        return TFNode.start_cluster_server(self, num_gpus, rdma)

    def export_saved_model(self, sess, export_dir, tag_set, signatures):
        """See TFNode.export_saved_model."""
        TFNode.export_saved_model(sess, export_dir, tag_set, signatures)

    def get_data_feed(
        self, train_mode=True, qname_in="input", qname_out="output", input_mapping=None
    ):
        """See TFNode.DataFeed."""
        return TFNode.DataFeed(self.mgr, train_mode, qname_in, qname_out, input_mapping)

    def get_file_feed(self, path: str, columns: Sequence[str] = (), epochs: int = 1) -> Any:
        """A feed of this worker's share of the rows of Parquet, Arrow or TFRecord files.

        Args:
            path: a file or folder that this host sees, as it is or by absolute_path().
            columns: which to read; none: all.
            epochs: how often each row is given.

        Raises:
            FileNotFoundError: nothing is there.
            ValueError: another file system, or a column that the files do not have.
        """
        from hearth.tensorflowonspark.node_files import FileFeed

        return FileFeed(path, columns, self._share(), epochs)

    def _share(self) -> tuple[int, int]:
        """(this node's number among those that train, their number)."""
        masters = [role for role in self.cluster_spec if role not in ("worker", "ps", "evaluator")]
        before = len(self.cluster_spec[masters[0]]) if masters and self.job_name == "worker" else 0
        return before + self.task_index, max(1, self.num_workers)

    def release_port(self):
        """See TFNode.release_port."""
        TFNode.release_port(self)


class TFSparkNode:
    """Kept for programs that look here; a node's state lives in its own process."""

    mgr = None
    cluster_id = None


def _has_spark_resource_api():
    """Whether Spark tells a task its resources; every Spark that this runs on does."""
    return True


def _get_cluster_spec(sorted_cluster_info):
    """{role: ["host:port", ...]} of the nodes."""
    return roles.cluster_spec(sorted_cluster_info)


def _get_manager(cluster_info, host, executor_id):
    """The entry of a node in `cluster_info`. Raises ValueError where there is none."""
    for node in cluster_info:
        if node["host"] == host and node["executor_id"] == executor_id:
            return node
    raise ValueError(f"no node of the cluster is on host {host} with id {executor_id}")


def run(fn, tf_args, cluster_meta, tensorboard, log_dir, queues, background):
    """The body of the start job: each task starts the node whose id is its element.

    Args:
        fn: the main function, fn(tf_args, ctx).
        tf_args: its first argument; a list becomes sys.argv.
        cluster_meta: what TFCluster.run made: id, token, cluster_template, coordinator, ...; one
            that a program made itself is refused.
        tensorboard: whether to start TensorBoard beside the first worker.
        log_dir: what that shows.
        queues: names of the feeds.
        background: the task returns when the node's program has started; else when it has ended.

    The body raises ValueError where TFCluster.run did not make `cluster_meta`.
    """
    from pyspark import cloudpickle

    program = cloudpickle.dumps((fn, tf_args))
    options = node_options(tf_args, tensorboard, log_dir, queues, background=background)

    def start(iterator: Iterator[int]) -> None:
        _check_meta(cluster_meta)  # it is complete once the cluster's key is made
        for executor_id in iterator:
            start_node(make_job(cluster_meta, executor_id, options, task_gpus()), program)

    return start


def _check_meta(cluster_meta: Mapping[str, Any]) -> None:
    # The token and the coordinator's address are in it only once the cluster is launched.
    if "restart_count" not in cluster_meta:
        raise ValueError(
            "this cluster_meta was not made by TFCluster.run, so nodes could not prove to each "
            "other that they belong together: start the nodes by TFCluster.run"
        )


def node_options(
    tf_args: Any, tensorboard: bool, log_dir: str | None, queues: Sequence[str], *, background: bool
) -> dict[str, Any]:
    """What all nodes of a cluster have in common."""
    return {
        "tensorboard": tensorboard,
        "log_dir": log_dir,
        "queues": [name for name in queues if name != "error"],
        "num_gpus": _asked_gpus(tf_args),
        "background": background,
    }


def _asked_gpus(tf_args: Any) -> int | None:
    """`num_gpus` of the arguments, where they have it."""
    try:
        if "num_gpus" in tf_args:
            asked = tf_args["num_gpus"] if isinstance(tf_args, Mapping) else tf_args.num_gpus
            return int(asked)
    except (TypeError, AttributeError):
        pass  # neither a mapping nor a namespace: it names no GPUs
    return None


def make_job(
    cluster_meta: Mapping[str, Any],
    executor_id: int,
    options: Mapping[str, Any],
    gpus: Sequence[str],
) -> dict[str, Any]:
    """All that a supervisor needs to know of its node."""
    template = cluster_meta["cluster_template"]
    job_name, task_index = roles.role_of(template, executor_id)
    board_role = next((role for role in ("worker", "chief", "master") if role in template), "")
    return {
        **options,
        "name": f"{job_name}:{task_index}",
        "executor_id": executor_id,
        "job_name": job_name,
        "task_index": task_index,
        "tensorboard": options["tensorboard"] and (job_name, task_index) == (board_role, 0),
        "gpus": list(gpus),
        "cluster_template": template,
        "world": cluster_meta["num_executors"],
        "token": cluster_meta["token"],
        "coordinator": cluster_meta["coordinator"],
        "defaultFS": cluster_meta["default_fs"],
        "working_dir": cluster_meta["working_dir"],
        "release_port": cluster_meta["release_port"],
        "restart_count": cluster_meta["restart_count"],
    }


def start_node(job: dict[str, Any], program: bytes) -> None:
    """Starts a node in this executor; waits as `job["background"]` says.

    Raises:
        NodeError: it failed.
    """
    from hearth.tensorflowonspark.node_process import NodeProcess

    node = NodeProcess(job, program)
    try:
        node.wait("started" if job["background"] else "done")
    finally:
        node.close()


def train(cluster_info, cluster_meta, feed_timeout=600, qname="input"):
    """The body of a feed job: yields whether the node wants no more rows.

    The RDD's elements are the rows; TFCluster.train sends Spark's own pickles instead, and keeps
    several attempts of a partition apart.

    Raises:
        ValueError: TFCluster.run did not make `cluster_info`.
    """
    from hearth.tensorflowonspark.feed_task import feed
    from hearth.tensorflowonspark.pickles import batches_of_pickles, pickle_rows

    spec = feed_spec(cluster_info, qname, feed_timeout)

    def feed_rows(iterator: Iterator[Any]) -> Iterator[bool]:
        yield bool(feed(spec, partition_id(), batches_of_pickles(pickle_rows(iterator))))

    return feed_rows


def inference(cluster_info, feed_timeout=600, qname="input"):
    """The body of an inference: yields one result per row, in order."""
    from hearth.tensorflowonspark.feed_task import infer
    from hearth.tensorflowonspark.pickles import batches_of_pickles, pickle_rows

    spec = feed_spec(cluster_info, qname, feed_timeout, mode="inference")

    def infer_rows(iterator: Iterator[Any]) -> Iterator[Any]:
        yield from infer(spec, partition_id(), batches_of_pickles(pickle_rows(iterator)))

    return infer_rows


def shutdown(cluster_info, grace_secs=0, queues=["input"]):  # noqa: B006 (the API's default)
    """Kept for the API: the driver itself ends feeds; yields True."""

    def nothing_to_do(iterator: Iterator[Any]) -> Iterator[bool]:
        yield True

    return nothing_to_do


def feed_spec(
    cluster_info: Sequence[Mapping[str, Any]], qname: str, timeout_s: float, **options: Any
):
    """A FeedSpec for the nodes that take rows; `cluster_info` as a TFCluster has it."""
    from hearth.tensorflowonspark.feed_task import FeedSpec

    nodes = [node for node in cluster_info if node["job_name"] not in roles.FED_ROLES_EXCEPT]
    if not nodes or "feed_port" not in nodes[0]:
        raise ValueError(
            "this cluster_info is not of a cluster that TFCluster.run started with a worker: feed "
            "the nodes by its train() and inference()"
        )
    return FeedSpec(
        token=str(nodes[0]["authkey"]),
        nodes=tuple({k: v for k, v in node.items() if k != "authkey"} for node in nodes),
        queue=qname,
        timeout_s=feed_timeout_or_never(timeout_s),
        **{"feed": secrets.token_hex(8), **options},
    )


def feed_timeout_or_never(seconds: float) -> float:
    """-1 means no limit, as in the API."""
    return 1e9 if seconds < 0 else float(seconds)


def partition_id() -> int:
    """The partition of the Spark task that runs this; 0 outside of Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0
