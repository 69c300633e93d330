"""A cluster of PyTorch nodes on a Spark application's executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from hearth.cluster import roles
from hearth.cluster.driver.cluster import Cluster
from hearth.cluster.driver.plan import WAIT_S, Plan, named_datasets
from hearth.cluster.driver.reports.reports import ReportOptions, Shown
from hearth.cluster.task.node_job import NodeOptions, NodeProgram
from hearth.errors import invalid
from hearth.torch import returned
from hearth.torch.main_function import context_of_node, run_main


class TorchCluster(Cluster):
    """A running cluster, returned by TorchCluster.run(). Thread-safe; `with` ends it.

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
        profile: Any = None,
        timeout_s: float = WAIT_S,
        **shown: Unpack[Shown],
    ) -> TorchCluster:
        """Starts nodes that run main_fun(args, ctx), each in a separate process on an executor.

        RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and so on are set before main_fun, so
        init_process_group() only needs a backend.

        Args:
            spark: a SparkSession (also of Spark Connect) or a SparkContext.
            main_fun: the main function; pickled by value if executors cannot import it. Its second
                argument is a TorchContext.
            args: the main function's first argument; a list becomes the node's sys.argv.
            workers: number of nodes, each a rank of the process group. (least, most), with restart:
                as many as there are slots. If a lost executor is not replaced within
                spark.hearth.executorWait, the cluster continues with fewer nodes; if more slots
                become available, it continues with more after ctx.checkpoint(). With fewer slots
                than least it waits for spark.hearth.minWorkersWait.
            roles_of_nodes: number of nodes by role instead; nodes of "ps" and "evaluator" receive
                no rows, are not ranks, and end after the others.
            feeds, datasets, profile, timeout_s, shown: as for cluster.run().
            gpus_per_worker: number of GPUs that a node sees; None: those that Spark assigned, or
                else one of the host's GPUs, if any; 0: none.
            restart: as for cluster.run(), up to ten times without a checkpoint in between.
            checkpoint_dir: path or URI of the folder of ctx.checkpoint() and ctx.restore().

        Raises:
            ReservationTimeoutError: not all nodes started; the message lists them, with possible
                reasons.
            NodeError: a node failed during start.
            HearthError: dynamic allocation would end idle nodes.
            TypeError, ValueError, OSError: an invalid dataset, or files that cannot be listed.
        """
        reports = ReportOptions.of(main_fun, args, shown)
        rows = named_datasets(datasets)
        nodes = NodeOptions(tuple(feeds), bool(feeds or rows), gpus_per_worker)
        plan = Plan(
            _template_of(workers, restart, roles_of_nodes),
            replace(nodes, checkpoint_dir=checkpoint_dir, logs=reports.logs),
            release_port=False,
            restart=restart,
            timeout_s=timeout_s,
            datasets=rows, reports=reports, profile=profile,
            least_workers=workers[0] if isinstance(workers, tuple) else 0,
        )  # fmt: skip
        return cls.of_plan(spark, plan, main_fun, args).warn_at_exit()

    @classmethod
    def of_plan(
        cls, spark: Any, plan: Plan, main_fun: Callable[[Any, Any], Any], args: Any
    ) -> TorchCluster:
        """Starts the nodes of a plan, which must keep the nodes' ports reserved
        (release_port=False). Raises like run()."""
        cluster = cls(spark, plan)
        cluster.start(NodeProgram(partial(run_main, main_fun), args, context_of_node))
        return cluster

    def _unpack_result(self, data: bytes) -> Any:
        return returned.result_of(data)


def _template_of(
    workers: int | tuple[int, int], restart: bool, roles_of_nodes: Mapping[str, int] | None
) -> dict[str, list[int]]:
    """Node ids by role, for the largest number of workers. Raises ValueError for invalid
    numbers."""
    least, most = workers if isinstance(workers, tuple) and len(workers) == 2 else (0, workers)
    if not all(hasattr(type(number), "__index__") for number in (least, most)):
        raise invalid(f"workers is {workers!r}: give an integer, or (least, most)")
    if most < 1 or least > most or least < 0:
        raise invalid(f"workers is {workers}: give a number, or (least, most)")
    if least and (roles_of_nodes or not restart):
        raise invalid(
            "workers=(least, most) needs restart=True, and no roles_of_nodes: the number of "
            "workers changes by starting the cluster again"
        )
    return roles.template_of(roles_of_nodes or {"worker": most})
