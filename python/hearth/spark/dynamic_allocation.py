"""Spark's dynamic allocation, which starts executors when tasks wait, and ends idle ones.

A training's ranks are a barrier stage, for which Spark does not support dynamic allocation. A
cluster's nodes are started by ordinary tasks, for which Spark requests executors; a block stored in
each executor prevents its removal. After these tasks have ended, Spark only replaces a lost
executor if ask_for_slots() requests one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.errors import HearthError

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile

SETTING = "spark.dynamicAllocation.enabled"
_MOST = "spark.dynamicAllocation.maxExecutors"
# The idle timeout of executors that store blocks; infinite by default.
_BLOCKS = "spark.dynamicAllocation.cachedExecutorIdleTimeout"

# Returns the setting of a key, or a default.
Setting = Callable[[str, str], str]


def is_on(setting: Setting) -> bool:
    """Whether Spark may add and remove executors."""
    return setting(SETTING, "false").lower() == "true"


def most_executors(setting: Setting) -> int | None:
    """The maximum number of executors; None if unlimited."""
    most = setting(_MOST, "")
    return int(most) if most else None


def ask_for_slots(session: Any, slots: int, profile: ResourceProfile | None = None) -> None:
    """With dynamic allocation, requests executors for this many task slots. Returns immediately and
    never raises. Executors that stay idle end after spark.dynamicAllocation.executorIdleTimeout.

    `profile`: the tasks' profile, already registered with Spark; None: Spark's default.
    """
    if not is_on(session.conf.get) or not hasattr(session, "_jsc"):
        return
    with suppress(Exception):  # the session has ended
        scala_context = session._jsc.sc()
        profiles = scala_context.resourceProfileManager()
        wanted = profile._java_resource_profile if profile else profiles.defaultResourceProfile()
        # Includes the running and waiting tasks, because this request replaces Spark's own.
        needed = _unfinished_tasks(scala_context.statusStore().activeStages())
        needed[wanted.id()] = max(slots, needed[wanted.id()])
        most = most_executors(session.conf.get)
        nothing = executors = session._jvm.scala.collection.immutable.HashMap()
        for number, tasks in needed.items():
            of_tasks = profiles.resourceProfileFromId(number)
            count = -(-tasks // max(1, of_tasks.maxTasksPerExecutor(scala_context.conf())))
            executors = executors.updated(number, count if most is None else min(count, most))
        scala_context.schedulerBackend().requestTotalExecutors(executors, nothing, nothing)


def _unfinished_tasks(stages: Any) -> Counter[int]:
    """The number of unfinished tasks of running stages, by resource profile id."""
    tasks = Counter[int]()
    for stage in map(stages.apply, range(stages.size())):
        tasks[stage.resourceProfileId()] += stage.numTasks() - stage.numCompleteTasks()
    return tasks


def refuse_for_ranks(setting: Setting) -> None:
    """Raises HearthError if dynamic allocation is on, because a training's ranks could not run."""
    if is_on(setting):
        raise HearthError(
            f"{SETTING} is true, but all ranks of a training must stay: start the session with "
            f"{SETTING}=false and spark.executor.instances equal to the number of ranks"
        )


def refuse_for_nodes(setting: Setting, can_keep: bool) -> None:
    """Raises HearthError if nodes that wait for rows would lose their executors.

    `can_keep`: whether this session can store blocks in executors.
    """
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
    """Stores blocks in nodes' executors, so that Spark does not remove them. Thread-safe."""

    def __init__(self) -> None:
        self._blocks: list[Any] = []

    def action(self, nodes: Any, body: Callable[[Iterator[int]], Any]) -> Callable[[], Any]:
        """The action that runs `body` for each partition of an RDD and stores a block on its
        executor, then removes the blocks of earlier actions.
        """
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
            with suppress(Exception):  # session ended, or another thread removed it
                self._blocks.remove(block)
                block.unpersist()


def _run_and_leave(body: Callable[[Iterator[int]], Any], ids: Iterator[int]) -> Iterable[int]:
    body(ids)
    return [0]
