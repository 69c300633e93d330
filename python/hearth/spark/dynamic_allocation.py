"""Spark's dynamic allocation: executors start when tasks wait, and end when they are idle.

Ranks of a training are a barrier stage, for which Spark refuses it. Nodes of a cluster are started
by ordinary tasks, for which it requests executors; a block in each of them keeps them. Once the
tasks have ended, Spark replaces no lost executor unless ask_for_slots() requests it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

SETTING = "spark.dynamicAllocation.enabled"
_MOST = "spark.dynamicAllocation.maxExecutors"
# Idle timeout of executors with blocks; infinite by default.
_BLOCKS = "spark.dynamicAllocation.cachedExecutorIdleTimeout"

# Returns a setting by its key, with a default.
Setting = Callable[[str, str], str]


def is_on(setting: Setting) -> bool:
    return setting(SETTING, "false").lower() == "true"


def most_executors(setting: Setting) -> int | None:
    """The maximum number of executors; None without a limit."""
    most = setting(_MOST, "")
    return int(most) if most else None


def ask_for_slots(session: Any, slots: int) -> None:
    """Requests executors for this many task slots, with dynamic allocation; returns at once and
    never raises. Idle executors end after spark.dynamicAllocation.executorIdleTimeout."""
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
    """Unfinished tasks of all running stages: a request replaces Spark's own for them."""
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numTasks - stage.numCompletedTasks for stage in stages if stage is not None)


def refuse_for_ranks(setting: Setting) -> None:
    """Raises HearthError if it prevents a training's ranks from being launched."""
    from hearth import HearthError

    if is_on(setting):
        raise HearthError(
            f"{SETTING} is true, but all ranks of a training must stay: start the session with "
            f"{SETTING}=false and spark.executor.instances equal to the number of ranks"
        )


def refuse_for_nodes(setting: Setting, can_keep: bool) -> None:
    """Raises HearthError if nodes that wait for rows would lose their executors.

    `can_keep`: whether this session can hold blocks.
    """
    from hearth import HearthError

    if not is_on(setting):
        return
    if not can_keep:
        raise HearthError(
            f"{SETTING} is true, and Spark Connect cannot hold the executors of nodes "
            f"that wait for rows: start its server with {SETTING}=false"
        )
    if limit := setting(_BLOCKS, ""):
        raise HearthError(
            f"{SETTING} is true and {_BLOCKS}={limit}, so Spark would end nodes that wait this "
            f"long for rows: unset {_BLOCKS}, or set {SETTING}=false"
        )


class HeldExecutors:
    """Holds blocks in the executors of start jobs until release(). Thread-safe."""

    def __init__(self) -> None:
        self._blocks: list[Any] = []

    def action(self, nodes: Any, body: Callable[[Iterator[int]], Any]) -> Callable[[], Any]:
        """The action that runs `body` for each partition of an RDD and stores a block there; then
        removes the blocks of earlier actions."""
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
        """Releases the executors; never raises."""
        self._release(list(self._blocks))

    def _release(self, blocks: Iterable[Any]) -> None:
        for block in blocks:
            with suppress(Exception):  # the session has ended, or another thread came first
                self._blocks.remove(block)
                block.unpersist()


def _run_and_leave(body: Callable[[Iterator[int]], Any], ids: Iterator[int]) -> Iterable[int]:
    body(ids)
    return [0]
