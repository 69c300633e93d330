"""The parts of a cluster that run in Spark's tasks: start a node, feed it, end the feed.

Each function returns a function for mapPartitions or foreachPartition.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from hearth.cluster import roles
from hearth.cluster.errors import reported_to_driver
from hearth.cluster.feed_spec import feed_spec
from hearth.cluster.node.context import NodeContext
from hearth.cluster.task.node_job import NodeOptions, NodeProgram, start_body
from hearth.errors import invalid
from hearth.spark.task_resources import partition_id
from hearth.tensorflow.filesystems import register_when_imported
from hearth.tensorflowonspark import TFNode


def _alias(name: str) -> property:
    """An attribute under TensorFlowOnSpark's name."""
    return property(lambda self: getattr(self, name), lambda self, v: setattr(self, name, v))


class TFNodeContext(NodeContext):
    """A main function's context of node and cluster, with TensorFlowOnSpark's names."""

    def __init__(
        self,
        executor_id: int = 0,
        job_name: str = "",
        task_index: int = 0,
        cluster_spec: Mapping[str, Sequence[str]] = {},
        defaultFS: str = "file://",
        working_dir: str = ".",
        mgr: Any = None,
        tmp_socket: socket.socket | None = None,
    ):
        super().__init__(
            executor_id, job_name, task_index, cluster_spec, defaultFS, working_dir,
            mgr=mgr, port=tmp_socket,
        )  # fmt: skip

    @classmethod
    def of_node(cls, **values: Any) -> TFNodeContext:
        """The context of a running node; `values`: the fields of a NodeContext."""
        register_when_imported()
        context = cls.__new__(cls)
        NodeContext.__init__(context, **values)
        return context

    worker_num = executor_id = _alias("node_id")
    job_name = _alias("role")
    task_index = _alias("index")
    defaultFS = _alias("default_fs")
    tmp_socket = _alias("port")

    def start_cluster_server(self, num_gpus: int = 1, rdma: bool = False) -> NoReturn:
        """See TFNode.start_cluster_server."""
        TFNode.start_cluster_server(self, num_gpus, rdma)

    def export_saved_model(
        self, sess: Any, export_dir: str, tag_set: Any, signatures: Any
    ) -> NoReturn:
        """See TFNode.export_saved_model."""
        TFNode.export_saved_model(sess, export_dir, tag_set, signatures)

    def get_data_feed(
        self,
        train_mode: bool = True,
        qname_in: str = "input",
        qname_out: str = "output",
        input_mapping: Mapping[str, str] | None = None,
    ) -> TFNode.DataFeed:
        return TFNode.DataFeed(self.mgr, train_mode, qname_in, qname_out, input_mapping)

    def get_file_feed(
        self, path: str, columns: Sequence[str] = (), epochs: int = 1
    ) -> TFNode.FileFeed:
        return TFNode.FileFeed(path, columns, self.share(), epochs, self.mgr)

    def release_port(self) -> None:
        TFNode.release_port(self)


class TFSparkNode:
    """TensorFlowOnSpark's holder of a node's state, for programs that read its attributes. Hearth
    keeps a node's state in the node's process."""

    mgr = None
    cluster_id = None


def _has_spark_resource_api() -> bool:
    """Whether Spark reports resources to tasks; every supported Spark does."""
    return True


def _get_cluster_spec(sorted_cluster_info: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """{role: ["host:port", ...]} of the nodes."""
    return roles.cluster_spec(sorted_cluster_info)


def _get_manager(
    cluster_info: Iterable[Mapping[str, Any]], host: str, executor_id: int
) -> Mapping[str, Any]:
    """The entry of a node in `cluster_info`. Raises ValueError if there is none."""
    for node in cluster_info:
        if node["host"] == host and node["executor_id"] == executor_id:
            return node
    raise invalid(f"no node of the cluster is on host {host} with id {executor_id}")


def run(
    fn: Callable[..., Any],
    tf_args: Any,
    cluster_meta: Mapping[str, Any],
    tensorboard: bool,
    log_dir: str | None,
    queues: Sequence[str],
    background: bool,
) -> Callable[[Iterator[int]], None]:
    """The body of the start job: each task starts the node whose id is the only element of the
    task's partition.

    Args:
        fn: the main function, fn(tf_args, ctx).
        tf_args: fn's first argument; a list becomes sys.argv.
        cluster_meta: created by TFCluster.run: id, token, cluster_template, coordinator, ...; other
            dicts are refused.
        tensorboard: whether to start TensorBoard on the first worker.
        log_dir: TensorBoard's log directory.
        queues: names of the feeds.
        background: the task returns when the node's program has started; otherwise when it has
            ended.

    The body raises ValueError if TFCluster.run did not create `cluster_meta`.
    """
    options = node_options(tf_args, queues, background)
    options = replace(options, tensorboard=bool(tensorboard), log_dir=log_dir)
    return start_body(node_program(fn, tf_args), cluster_meta, options)


def node_program(fn: Any, tf_args: Any) -> NodeProgram:
    """The program of a node, with a context that has TensorFlowOnSpark's names."""
    return NodeProgram(fn, tf_args, TFNodeContext.of_node)


def node_options(tf_args: Any, queues: Sequence[str] = (), background: bool = False) -> NodeOptions:
    """Options from TensorFlowOnSpark's arguments; TFCluster.run adds the other options."""
    return NodeOptions(
        queues=tuple(name for name in queues if name != "error"),
        background=background,
        num_gpus=_asked_gpus(tf_args),
    )


def _asked_gpus(tf_args: Any) -> int | None:
    """`num_gpus` of the arguments, if present."""
    try:
        if "num_gpus" in tf_args:
            asked = tf_args["num_gpus"] if isinstance(tf_args, Mapping) else tf_args.num_gpus
            return int(asked)
    except (TypeError, AttributeError):
        pass  # neither a mapping nor a namespace, so without num_gpus
    return None


def train(
    cluster_info: Sequence[Mapping[str, Any]],
    cluster_meta: Any,
    feed_timeout: float = 600,
    qname: str = "input",
) -> Callable[[Iterator[Any]], Iterator[bool]]:
    """The body of a feed job: yields whether the node needs no more rows.

    The RDD's elements are the rows; TFCluster.train sends Spark's pickles instead, and
    distinguishes attempts of a partition.

    Raises:
        ValueError: TFCluster.run did not create `cluster_info`.
    """
    from hearth.cluster.task.feed_task import feed
    from hearth.rows.pickles import batches_of_pickles, pickle_rows

    spec = feed_spec(cluster_info, qname, feed_timeout)

    def feed_rows(iterator: Iterator[Any]) -> Iterator[bool]:
        with reported_to_driver():
            ended = feed(spec, partition_id(), batches_of_pickles(pickle_rows(iterator)))
        yield bool(ended)

    return feed_rows


def inference(
    cluster_info: Sequence[Mapping[str, Any]], feed_timeout: float = 600, qname: str = "input"
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The body of an inference job: yields one result per row, in order."""
    from hearth.cluster.task import feed_task
    from hearth.rows.pickles import batches_of_pickles, pickle_rows

    spec = feed_spec(cluster_info, qname, feed_timeout, mode="inference")

    def infer(iterator: Iterator[Any]) -> Iterator[Any]:
        with reported_to_driver():
            batches = batches_of_pickles(pickle_rows(iterator))
            yield from feed_task.infer_rows(spec, partition_id(), batches)

    return infer


def shutdown(
    cluster_info: Any,
    grace_secs: float = 0,
    queues: Sequence[str] = ["input"],
) -> Callable[[Iterator[Any]], Iterator[bool]]:
    """Only yields True, for API compatibility, because the driver ends the feeds."""

    def nothing_to_do(iterator: Iterator[Any]) -> Iterator[bool]:
        yield True

    return nothing_to_do
