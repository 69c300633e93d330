"""Starts nodes: the body of Spark's start job, and the description of a node for its supervisor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hearth.cluster import roles
from hearth.cluster.errors import reported_to_driver
from hearth.cluster.node.context import NodeContext
from hearth.cluster.task import unpicklable
from hearth.errors import invalid
from hearth.spark.task_resources import task_gpus


@dataclass(frozen=True)
class NodeOptions:
    """Options of all nodes of a cluster."""

    queues: tuple[str, ...] = ()  # names of the feeds
    background: bool = False  # the start job's task returns once the node's program has started
    num_gpus: int | None = None  # GPUs visible to a node; None: those that Spark granted
    tensorboard: bool = False  # the first worker starts TensorBoard
    log_dir: str | None = None  # TensorBoard's log folder
    checkpoint_dir: str = ""  # programs' default folder for checkpoints
    logs: str = "none"  # ranks whose output the driver shows: "rank0", "all", "none"
    holds: bool = False  # a `background` task stays as long as its node, to hold resources


@dataclass(frozen=True)
class NodeProgram:
    """A node's program: function(args, context). A list of args becomes sys.argv."""

    function: Callable[[Any, Any], Any]
    args: Any
    context: Callable[..., NodeContext] = NodeContext

    def pickled(self) -> bytes:
        """Pickles the program for a node, as a tuple, so that the pickle does not refer to this
        class.

        Raises:
            TypeError: a value cannot be pickled; the message names its variable.
        """
        from pyspark import cloudpickle

        try:
            return cloudpickle.dumps((self.function, self.args, self.context))
        except Exception as error:
            what = unpicklable.describe(self.function, self.args)
            because = f" because of {what}" if what else ""
            raise TypeError(
                f"the main function cannot be pickled for the executors{because} ({error}): "
                "create such values inside the main function"
            ) from error


def start_body(
    program: NodeProgram, meta: Mapping[str, Any], options: NodeOptions
) -> Callable[[Iterator[int]], None]:
    """The body of the start job: each task starts the node whose id is the only element of the
    task's partition.

    The body raises ValueError if `meta` is not a Cluster's, and TaskError if a node fails.
    """
    pickled = program.pickled()

    def start(iterator: Iterator[int]) -> None:
        _check_meta(meta)  # `meta` is complete only once the cluster is launched
        with reported_to_driver():
            for node_id in iterator:
                start_node(make_job(meta, node_id, options, task_gpus()), pickled)

    return start


def _check_meta(meta: Mapping[str, Any]) -> None:
    # The token and the coordinator's address are added when the cluster is launched.
    if "restart_count" not in meta:
        raise invalid(
            "this cluster_meta was not created by TFCluster.run, so its nodes could not "
            "authenticate each other: start the nodes by TFCluster.run"
        )


def make_job(
    meta: Mapping[str, Any], node_id: int, options: NodeOptions, gpus: Sequence[str]
) -> dict[str, Any]:
    """A supervisor's description of its node."""
    template = meta["cluster_template"]
    job_name, task_index = roles.role_of(template, node_id)
    fed = roles.fed_ids(template)
    rank = fed.index(node_id) if node_id in fed else None
    board_role = next((role for role in ("worker", "chief", "master") if role in template), "")
    return {
        **asdict(options),
        "name": f"{job_name}:{task_index}",
        "executor_id": node_id,
        "job_name": job_name,
        "task_index": task_index,
        "tensorboard": options.tensorboard and (job_name, task_index) == (board_role, 0),
        "gpus": list(gpus),
        "cluster_template": template,
        "world": meta["num_executors"],
        "token": meta["token"],
        "coordinator": meta["coordinator"],
        "tokens": asdict(meta["tokens"]) if meta["tokens"] else None,
        "defaultFS": meta["default_fs"],
        "working_dir": meta["working_dir"],
        "release_port": meta["release_port"],
        "restart_count": meta["restart_count"],
        "ports": meta.get("ports", {}),
        "links": meta.get("links", {}),
        "sources": meta.get("datasets", {}),
        "called": f"{job_name}:{task_index}" if rank is None else f"rank {rank}",
        "counts": rank == 0,  # the driver shows the node's reports
        "captures": _captures(options.logs, rank, node_id in meta.get("output_here", ())),
        "cluster": f"{meta.get('id', 0):x}",
        "keep_key": meta.get("keep_key", ""),
    }


def _captures(logs: str, rank: int | None, here: bool) -> str:
    """Where a node's output goes in addition to the executor's log files: "driver", nowhere (""),
    or "here" if the executor's output is the driver's terminal."""
    if logs == "none" or (logs == "rank0" and rank != 0):
        return ""
    return "here" if here else "driver"


def start_node(job: dict[str, Any], program: bytes) -> None:
    """Starts a node in this executor; waits as `job["background"]` says.

    Raises:
        NodeError: the node failed.
    """
    from hearth.cluster.task.node_process import NodeProcess

    node = NodeProcess(job, program)
    try:
        node.wait("started" if job["background"] and not job["holds"] else "done")
    finally:
        node.close()
