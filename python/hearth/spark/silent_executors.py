"""Makes Spark replace executors that no longer respond.

If a host loses its network, its connections are not closed. Spark only notices after minutes
(spark.network.timeout). Until then it counts the executor's slots, waits for its tasks, and even at
the end of the session waits for its replies (Spark's cleaner requests each executor to drop unused
data).
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

# The mangled name of a Scala method of Spark's scheduler backend that returns executors' data.
_EXECUTORS = "org$apache$spark$scheduler$cluster$CoarseGrainedSchedulerBackend$$executorDataMap"
# Cancelled tasks end within this time if their executor responds, because Spark kills a Python
# worker 2 s after its task (spark.python.task.killTimeout).
_TASK_END_WAIT_S = 5.0
_ANSWER_WAIT_S = 5.0


def replace_silent(spark: SparkSession, tag: str, unless_they_answer: bool = False) -> None:
    """Waits for the end of the tasks of the cancelled job with `tag`; replaces silent executors.

    An executor is silent if a task on it has not ended after five seconds and, with
    `unless_they_answer`, it also does not reply to a request within five more seconds. Does nothing
    with Spark Connect, where only the server knows the executors. Never raises, because Spark
    itself notices later.
    """
    if not hasattr(spark, "_jsc"):
        return
    try:
        stages = _stages_of(spark, tag)
        deadline = time.monotonic() + _TASK_END_WAIT_S
        # Spark's Python API has no event for the end of a task, so poll.
        while (silent := _executors_at_work(spark, stages)) and time.monotonic() < deadline:
            time.sleep(0.05)
        asked = {name: _ask(spark, name) for name in silent if unless_they_answer}
        deadline = time.monotonic() + _ANSWER_WAIT_S
        for executor, host in silent.items():
            left = max(0.0, deadline - time.monotonic())
            if executor not in asked or not asked[executor].wait(left):
                _ask_to_replace(spark, executor, host)
    except Exception as error:  # Spark lacks these functions, or has stopped
        logger.warning("cannot find executors that do not respond: %s", error)


def replace_executor(
    spark: SparkSession, tag: str, partition: int, unless_it_answers: bool = False
) -> None:
    """Replaces the executor that runs, or last ran, a partition of the job with `tag`.

    For an executor without running tasks, whose loss Spark does not notice. With
    `unless_it_answers`, does so only if it does not reply within five seconds. Does nothing with
    Spark Connect. Never raises.
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
                    _ask_to_replace(spark, executor, last.host())
    except Exception as error:  # Spark lacks these functions, or has stopped
        logger.warning("cannot find the executor that does not respond: %s", error)


def _stages_of(spark: SparkSession, tag: str) -> set[int]:
    """The stages of the jobs with the tag."""
    jobs = _items(spark, spark._jsc.sc().statusStore().jobsList(None))
    return {
        stage
        for job in jobs
        if tag in _items(spark, job.jobTags())
        for stage in _items(spark, job.stageIds())
    }


def _executors_at_work(spark: SparkSession, stages: set[int]) -> dict[str, str]:
    """The executors that run tasks of the stages, according to Spark, and their hosts."""
    store, jvm = spark._jsc.sc().statusStore(), spark._jvm
    running = jvm.java.util.List.of(jvm.org.apache.spark.status.api.v1.TaskStatus.RUNNING)
    found = {}
    for stage in _items(spark, store.activeStages()):  # stages with running tasks
        if stage.stageId() in stages:
            attempt, unsorted = stage.attemptId(), jvm.scala.Option.empty()
            every = (0, (1 << 31) - 1, unsorted, True, running)
            for task in _items(spark, store.taskList(stage.stageId(), attempt, *every)):
                found[task.executorId()] = task.host()
    return found


def _ask(spark: SparkSession, executor: str) -> threading.Event:
    """Requests a thread dump from an executor; the reply sets the event."""
    context, answer = spark._jsc.sc(), threading.Event()

    def ask() -> None:
        with suppress(Exception):  # Spark has stopped, or the wait was cancelled
            if context.getExecutorThreadDump(executor).isDefined():
                answer.set()

    threading.Thread(target=ask, name="hearth-ask", daemon=True).start()
    return answer


def _items(spark: SparkSession, collection: Any) -> list[Any]:
    return list(spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(collection))


def _ask_to_replace(spark: SparkSession, executor: str, host: str) -> None:
    """Makes Spark replace the executor, and ends all pending requests to it."""
    logger.warning("executor %s on %s does not respond: asking Spark to replace it", executor, host)
    connection = _connection_of(spark._jsc.sc().schedulerBackend(), executor)
    _replace(spark, executor)
    if connection is not None:
        connection.close()


def _replace(spark: SparkSession, executor: str) -> None:
    """Replaces an executor like Spark does after a missing heartbeat (HeartbeatReceiver)."""
    context, scheduler = spark._jsc.sc(), spark._jvm.org.apache.spark.scheduler
    context.killAndReplaceExecutor(executor)
    reason = scheduler.ExecutorProcessLost(
        "it does not respond", spark._jvm.scala.Option.empty(), False
    )
    message = getattr(scheduler.cluster, "CoarseGrainedClusterMessages$RemoveExecutor")
    context.schedulerBackend().driverEndpoint().send(message(executor, reason))


def _connection_of(backend: Any, executor: str) -> Any:
    """The driver's connection to the executor; None if unknown."""
    try:
        known = getattr(backend, _EXECUTORS)().get(executor)
        return known.get().executorEndpoint().client() if known.isDefined() else None
    except Exception as error:  # this Spark version differs
        logger.warning("cannot close the connection of executor %s: %s", executor, error)
        return None
