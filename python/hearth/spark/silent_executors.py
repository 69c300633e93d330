"""Executors that have fallen silent: Spark is told to give them up and to replace them.

Where a host falls off the network no connection ends. Spark itself notices after minutes
(spark.network.timeout), and until then counts such an executor's slots, waits for its tasks, and
for its answers even when the session is to end (Spark's cleaner asks each executor to forget what
the driver has dropped).
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

# A method of Spark's scheduler backend, by Scala's name for it: what is known of each executor.
_EXECUTORS = "org$apache$spark$scheduler$cluster$CoarseGrainedSchedulerBackend$$executorDataMap"
# Tasks that were told to end do so within this time, or their executor does not hear it: Spark
# kills a Python worker 2 s after its task (spark.python.task.killTimeout).
_TASK_END_WAIT_S = 5.0
_ANSWER_WAIT_S = 5.0


def give_up_silent(spark: SparkSession, tag: str, unless_they_answer: bool = False) -> None:
    """Waits until the tasks of the job that had `tag`, which was ended, have ended, too.

    Gives up the executors on which they have not after five seconds. `unless_they_answer`: these
    are asked then, and have five seconds more. Does nothing with Spark Connect, whose server alone
    knows its executors. Never raises: Spark notices by itself, later.
    """
    if not hasattr(spark, "_jsc"):
        return
    try:
        stages = _stages_of(spark, tag)
        deadline = time.monotonic() + _TASK_END_WAIT_S
        # Spark's Python API has no event for the end of a task, so this asks now and then.
        while (silent := _executors_at_work(spark, stages)) and time.monotonic() < deadline:
            time.sleep(0.05)
        asked = {name: _ask(spark, name) for name in silent if unless_they_answer}
        deadline = time.monotonic() + _ANSWER_WAIT_S
        for executor, host in silent.items():
            left = max(0.0, deadline - time.monotonic())
            if executor not in asked or not asked[executor].wait(left):
                _give_up(spark, executor, host)
    except Exception as error:  # a Spark without these functions, or that has stopped
        logger.warning("silent executors cannot be told from others: %s", error)


def give_up_executor(
    spark: SparkSession, tag: str, partition: int, unless_it_answers: bool = False
) -> None:
    """Gives up the executor that runs, or ran, that partition of the job that had `tag`.

    For an executor without tasks, whose silence Spark has no cause to notice. `unless_it_answers`:
    it is asked first, and has five seconds. Does nothing with Spark Connect, and never raises.
    """
    if not hasattr(spark, "_jsc"):
        return
    try:
        store = spark._jsc.sc().statusStore()
        for stage in _stages_of(spark, tag):
            attempt = store.lastStageAttempt(stage).attemptId()
            tasks = _items(spark, store.taskList(stage, attempt, (1 << 31) - 1))
            if found := [task for task in tasks if task.index() == partition]:
                last = max(found, key=lambda task: task.attempt())
                executor = last.executorId()
                if not unless_it_answers or not _ask(spark, executor).wait(_ANSWER_WAIT_S):
                    _give_up(spark, executor, last.host())
    except Exception as error:  # a Spark without these functions, or that has stopped
        logger.warning("a silent executor cannot be told from others: %s", error)


def _stages_of(spark: SparkSession, tag: str) -> set[int]:
    """The stages of the jobs that had the tag."""
    jobs = _items(spark, spark._jsc.sc().statusStore().jobsList(None))
    return {
        stage
        for job in jobs
        if tag in _items(spark, job.jobTags())
        for stage in _items(spark, job.stageIds())
    }


def _executors_at_work(spark: SparkSession, stages: set[int]) -> dict[str, str]:
    """The host of each executor on which a task of the stages runs, as far as Spark knows."""
    store, jvm = spark._jsc.sc().statusStore(), spark._jvm
    running = jvm.java.util.List.of(jvm.org.apache.spark.status.api.v1.TaskStatus.RUNNING)
    found = {}
    for stage in _items(spark, store.activeStages()):  # those with tasks that run
        if stage.stageId() in stages:
            attempt, unsorted = stage.attemptId(), jvm.scala.Option.empty()
            every = (0, (1 << 31) - 1, unsorted, True, running)
            for task in _items(spark, store.taskList(stage.stageId(), attempt, *every)):
                found[task.executorId()] = task.host()
    return found


def _ask(spark: SparkSession, executor: str) -> threading.Event:
    """Asks it what its threads do; the event is set by the answer."""
    context, answer = spark._jsc.sc(), threading.Event()

    def ask() -> None:
        with suppress(Exception):  # Spark has stopped, or its wait was ended
            if context.getExecutorThreadDump(executor).isDefined():
                answer.set()

    threading.Thread(target=ask, name="hearth-ask", daemon=True).start()
    return answer


def _items(spark: SparkSession, collection: Any) -> list[Any]:
    return list(spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(collection))


def _give_up(spark: SparkSession, executor: str, host: str) -> None:
    """Has it replaced, and ends all waits for what it was asked before."""
    logger.warning("executor %s on %s does not answer: Spark is to replace it", executor, host)
    connection = _connection_of(spark._jsc.sc().schedulerBackend(), executor)
    _replace(spark, executor)
    if connection is not None:
        connection.close()


def _replace(spark: SparkSession, executor: str) -> None:
    """What Spark does itself when an executor's heartbeat is missing (HeartbeatReceiver)."""
    context, scheduler = spark._jsc.sc(), spark._jvm.org.apache.spark.scheduler
    context.killAndReplaceExecutor(executor)
    reason = scheduler.ExecutorProcessLost(
        "it does not answer any more", spark._jvm.scala.Option.empty(), False
    )
    message = getattr(scheduler.cluster, "CoarseGrainedClusterMessages$RemoveExecutor")
    context.schedulerBackend().driverEndpoint().send(message(executor, reason))


def _connection_of(backend: Any, executor: str) -> Any:
    """The driver's end of its one connection with the executor; None where none is known."""
    try:
        known = getattr(backend, _EXECUTORS)().get(executor)
        return known.get().executorEndpoint().client() if known.isDefined() else None
    except Exception as error:  # a Spark that keeps them elsewhere
        logger.warning("the connection of executor %s cannot be ended: %s", executor, error)
        return None
