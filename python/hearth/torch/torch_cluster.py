"""A cluster of PyTorch nodes on a Spark application's executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hearth.cluster import roles
from hearth.cluster.cluster import WAIT_S, Cluster, Plan
from hearth.cluster.node_job import NodeOptions, NodeProgram
from hearth.torch.context import TorchContext, run_main


class TorchCluster(Cluster):
    """A running cluster, as TorchCluster.run() made it. Any thread may use it; `with` ends it.

    train(), inference() and shutdown() are those of hearth.cluster.
    """

    @classmethod
    def run(
        cls,
        spark: Any,
        main_fun: Callable[[Any, Any], Any],
        args: Any = None,
        workers: int | tuple[int, int] = 1,
        *,
        roles_of_nodes: Mapping[str, int] | None = None,
        feeds: Sequence[str] = ("input",),
        datasets: Mapping[str, Any] | None = None,
        gpus_per_worker: int | None = None,
        restart: bool = False,
        checkpoint_dir: str = "",
        timeout_s: float = WAIT_S,
    ) -> TorchCluster:
        """Starts nodes that run main_fun(args, ctx), each in a process of its own on an executor.

        Before main_fun, the environment has RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
        GROUP_RANK, MASTER_ADDR and MASTER_PORT, so that init_process_group() needs a backend
        alone.

        Args:
            spark: a SparkSession, of Spark Connect, too, or a SparkContext.
            main_fun: the main function; pickled by value where executors cannot import it. Its
                second argument is a TorchContext.
            args: its first argument; a list becomes the node's sys.argv.
            workers: how many nodes; each is one rank of the process group. (least, most), with
                restart: as many as there are slots; where an executor is lost and not replaced
                within spark.hearth.executorWait, training goes on with fewer, and where slots come,
                with more after the next ctx.checkpoint(). ctx.world_size says how many there are.
            roles_of_nodes: number of nodes by role instead of `workers`. Those of "ps" and
                "evaluator" get no rows, are no ranks, and are ended after the others.
            feeds: names of the feeds by which train() and inference() bring rows; none: the nodes
                read their data themselves.
            datasets: by name the rows that each rank opens by ctx.dataset(): a DataFrame, or a
                source of hearth.data, whose files the ranks read.
            gpus_per_worker: GPUs that a node sees; None: what Spark granted, else one of the
                host's where it has any; 0: none.
            restart: where an executor is lost, or a node killed by SIGKILL, train() and
                shutdown() start all nodes again, with ctx.restart_count one higher, and send
                all rows again that are not safe (see DataFeed.commit). main_fun resumes from its
                own checkpoint. It does so up to ten times without a checkpoint in between.
            checkpoint_dir: path or URI of the folder that ctx.checkpoint() writes to and
                ctx.restore() reads from.
            timeout_s: seconds for all nodes to come.

        Raises:
            ReservationTimeoutError: not all nodes came; says which, and why that may be.
            NodeError: a node failed while it started.
            HearthError: Spark would end idle nodes (spark.dynamicAllocation.enabled).
            TypeError, ValueError, OSError: a dataset is no rows, or its files cannot be listed.
        """
        datasets = datasets or {}
        least, most = workers if isinstance(workers, tuple) else (0, workers)
        _check_workers(least, most, restart, roles_of_nodes)
        options = NodeOptions(
            queues=tuple(feeds),
            background=bool(feeds or datasets),
            num_gpus=gpus_per_worker,
            checkpoint_dir=checkpoint_dir,
        )
        plan = Plan(
            roles.template_of(roles_of_nodes or {"worker": most}),
            options,
            release_port=False,
            restart=restart,
            timeout_s=timeout_s,
            datasets=datasets,
            least_workers=least,
        )
        return cls.of_plan(spark, plan, main_fun, args)

    @classmethod
    def of_plan(
        cls, spark: Any, plan: Plan, main_fun: Callable[[Any, Any], Any], args: Any
    ) -> TorchCluster:
        """Starts the nodes of a plan, which must keep their ports. Raises as run()."""
        cluster = cls(spark, plan)
        cluster.start(NodeProgram(partial(run_main, main_fun), args, TorchContext.of_node))
        return cluster


def _check_workers(
    least: int, most: int, restart: bool, roles_of_nodes: Mapping[str, int] | None
) -> None:
    """Raises ValueError where the number of workers cannot be what is asked for."""
    if most < 1 or least > most or least < 0:
        raise ValueError(f"workers is ({least}, {most}): give a number, or (least, most)")
    if least and (roles_of_nodes or not restart):
        raise ValueError(
            "workers=(least, most) needs restart=True, and no roles_of_nodes: the number of "
            "workers changes by starting the cluster again"
        )
