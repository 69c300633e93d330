"""horovod.spark's run() on Spark's executors: `import hearth.horovod.spark`.

    results = hearth.horovod.spark.run(train, args=(0.01,), num_proc=4)

Each rank is a separate process on an executor, started by a task.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hearth.cluster import roles
from hearth.cluster.driver.cluster import Cluster
from hearth.cluster.driver.plan import WAIT_S, Plan
from hearth.cluster.results import joined
from hearth.cluster.task.node_job import NodeOptions, NodeProgram
from hearth.errors import invalid
from hearth.horovod.objects import pickler
from hearth.spark.session import active_session


def run(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int | None = None,
    start_timeout: float | None = None,
    env: Mapping[str, str] | None = None,
    **_: Any,
) -> list[Any]:
    """Runs fn(*args, **kwargs) as ranks on the executors of the active SparkSession.

    The driver unpickles the ranks' return values, as Spark does with results of tasks.

    Args:
        fn: pickled by value if executors cannot import it.
        num_proc: number of ranks, each in a task slot; None: spark.default.parallelism.
        start_timeout: seconds for all ranks to start.
        env: added to the environment of each rank.
        Other arguments of Horovod's, such as use_gloo, nics and verbose, are ignored.

    Returns:
        The return values of all ranks, in rank order.

    Raises:
        NodeError: a rank failed; the message has its host, and its traceback or signal.
        ReservationTimeoutError: not all ranks found a task slot.
        RuntimeError: there is no active session.
    """
    ranks = _session_and_ranks(num_proc)
    return _run(ranks, (fn, args, kwargs, env), _Limits(start_timeout))


def run_elastic(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int | None = None,
    min_num_proc: int | None = None,
    max_num_proc: int | None = None,
    start_timeout: float | None = None,
    elastic_timeout: float | None = None,
    reset_limit: int | None = None,
    env: Mapping[str, str] | None = None,
    **_: Any,
) -> list[Any]:
    """Like run(), but starts all ranks again if an executor is lost, with fewer ranks if it is not
    replaced.

    fn then starts from the beginning, so it must save its progress to files. Executors that are
    added later are not used before a restart.

    Args:
        num_proc, max_num_proc: largest number of ranks; min_num_proc: smallest number.
        reset_limit, elastic_timeout: ignored; see spark.hearth.executorWait and
            spark.hearth.minWorkersWait.
        Others: as for run().

    Returns:
        The return values of all ranks of the last start.

    Raises:
        ValueError: min_num_proc exceeds the number of ranks. And as run().
    """
    spark, most = _session_and_ranks(max_num_proc or num_proc)
    least = most if min_num_proc is None else min_num_proc
    if not 0 < least <= most:
        raise invalid(f"min_num_proc={least}: it must be from 1 to the number of ranks, {most}")
    limits = _Limits(start_timeout, True, least if least < most else 0)
    return _run((spark, most), (fn, args, kwargs, env), limits)


class _Limits:
    def __init__(self, timeout_s: float | None, restart: bool = False, least: int = 0):
        self.timeout_s = WAIT_S if timeout_s is None else timeout_s
        self.restart, self.least = restart, least


def _session_and_ranks(num_proc: int | None) -> tuple[Any, int]:
    spark: Any = active_session()
    if spark is None:
        raise invalid("hearth.horovod.spark needs an active SparkSession: start one first")
    if num_proc is None:
        num_proc = spark.sparkContext.defaultParallelism
    return spark, num_proc


def _run(ranks: tuple[Any, int], call: Any, limits: _Limits) -> list[Any]:
    spark, world = ranks
    plan = Plan(
        roles.template_of({"worker": world}),
        NodeOptions(),
        restart=limits.restart,
        timeout_s=limits.timeout_s,
        least_workers=limits.least,
    )
    fn, args, kwargs, env = call
    main = partial(_run_rank, fn, tuple(args), dict(kwargs or {}), dict(env or {}))
    cluster = Cluster(spark, plan)
    cluster.start(NodeProgram(main, None))
    with cluster:
        cluster.shutdown()
    found: dict[int, Any] = {}
    for node in range(world):
        if chunks := cluster.running.watch.values(node):
            rank, value = pickle.loads(joined(chunks))
            found[rank] = value
    return [found[rank] for rank in sorted(found)]


def _run_rank(fn: Any, args: Any, kwargs: Any, env: Any, _: Any, ctx: Any) -> None:
    """The main function of each node."""
    from hearth.horovod import basics

    os.environ.update(env)
    value = fn(*args, **kwargs)
    ctx.mgr.report_value(pickler().dumps((ctx.share()[0], value)))
    basics.shutdown()
