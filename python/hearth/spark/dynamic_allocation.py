"""Spark's dynamic allocation: executors that come when tasks wait, and go when they are idle.

Ranks of a training are a barrier stage, for which Spark refuses it. The nodes of a cluster come by
ordinary tasks, for which it asks for executors; these are kept by a block in each of them. Once the
tasks have ended Spark replaces no executor that is lost, unless ask_for_slots() has it do so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

SETTING = "spark.dynamicAllocation.enabled"
_MOST = "spark.dynamicAllocation.maxExecutors"
# How long an idle executor stays that holds blocks; for ever where it is not set.
_BLOCKS = "spark.dynamicAllocation.cachedExecutorIdleTimeout"

# Gives a setting by its key, with a default.
Setting = Callable[[str, str], str]


def is_on(setting: Setting) -> bool:
    return setting(SETTING, "false").lower() == "true"


def most_executors(setting: Setting) -> int | None:
    """How many executors Spark starts at most; None without a limit."""
    most = setting(_MOST, "")
    return int(most) if most else None


def ask_for_slots(session: Any, slots: int) -> None:
    """Has Spark start executors until there are so many task slots, where it allocates them by
    demand; returns at once and never raises. They go again once they were idle for
    spark.dynamicAllocation.executorIdleTimeout."""
    if not is_on(session.conf.get) or not hasattr(session, "_jsc"):
        return
    with suppress(Exception):  # the session has ended
        context, scala_context = session.sparkContext, session._jsc.sc()
        profile = scala_context.resourceProfileManager().defaultResourceProfile()
        each = max(1, profile.maxTasksPerExecutor(scala_context.conf()))
        needed = max(slots, _unfinished_tasks(context.statusTracker()))
        executors = -(-needed // each)
        if (most := most_executors(session.conf.get)) is not None:
            executors = min(executors, most)
        no_hosts = session._jvm.scala.collection.immutable.HashMap()
        scala_context.requestTotalExecutors(executors, 0, no_hosts)


def _unfinished_tasks(tracker: Any) -> int:
    """Of all stages that run: the total that Spark is asked for replaces what it asked for them."""
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numTasks - stage.numCompletedTasks for stage in stages if stage is not None)


def refuse_for_ranks(setting: Setting) -> None:
    """Raises HearthError where the ranks of a training cannot be launched for it."""
    from hearth import HearthError

    if is_on(setting):
        raise HearthError(
            f"{SETTING} is true, but the ranks of a training must all stay: start the session with "
            f"{SETTING}=false and spark.executor.instances as many as the ranks"
        )


def refuse_for_nodes(setting: Setting, can_keep: bool) -> None:
    """Raises HearthError where nodes that wait for rows would lose their executors.

    `can_keep`: whether this session can have blocks of its own.
    """
    from hearth import HearthError

    if not is_on(setting):
        return
    if not can_keep:
        raise HearthError(
            f"{SETTING} is true, and Spark Connect offers nothing to keep the executors of nodes "
            f"that wait for rows: start its server with {SETTING}=false"
        )
    if limit := setting(_BLOCKS, ""):
        raise HearthError(
            f"{SETTING} is true and {_BLOCKS}={limit}, so Spark would end nodes that wait for rows "
            f"as long: leave {_BLOCKS} out, or set {SETTING}=false"
        )


class KeptExecutors:
    """Blocks in the executors of start jobs, until release(). Any thread may use it."""

    def __init__(self) -> None:
        self._blocks: list[Any] = []

    def action(self, nodes: Any, body: Callable[[Iterator[int]], Any]) -> Callable[[], Any]:
        """What runs `body` for each partition of an RDD and leaves a block where it ran; blocks of
        earlier actions are removed then."""
        from pyspark import StorageLevel

        kept = nodes.mapPartitions(partial(_run_and_leave, body))
        kept.persist(StorageLevel.MEMORY_AND_DISK)
        before = list(self._blocks)
        self._blocks.append(kept)

        def act() -> None:
            kept.count()
            self._release(before)

        return act

    def release(self) -> None:
        """Lets Spark have the executors back; never raises."""
        self._release(list(self._blocks))

    def _release(self, blocks: Iterable[Any]) -> None:
        for block in blocks:
            with suppress(Exception):  # the session has ended, or another thread came first
                self._blocks.remove(block)
                block.unpersist()


def _run_and_leave(body: Callable[[Iterator[int]], Any], ids: Iterator[int]) -> Iterable[int]:
    body(ids)
    return [0]
