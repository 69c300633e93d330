"""Executors that have fallen silent: Spark is told to give them up and to replace them.

Where a host falls off the network no connection ends. Spark itself notices after minutes
(spark.network.timeout), and until then counts such an executor's slots and waits for its tasks.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

# Tasks that were told to end do so within this time, or their executor does not hear it: Spark
# kills a Python worker 2 s after its task (spark.python.task.killTimeout).
_TASK_END_WAIT_S = 5.0


def give_up_silent(spark: SparkSession, tag: str) -> None:
    """Waits until the tasks of the job that had `tag`, which was ended, have ended, too.

    Gives up the executors on which they have not after five seconds. Does nothing with Spark
    Connect, whose server alone knows its executors. Never raises: Spark notices by itself, later.
    """
    from py4j.protocol import Py4JError

    if not hasattr(spark, "_jsc"):
        return
    try:
        stages = _stages_of(spark, tag)
        deadline = time.monotonic() + _TASK_END_WAIT_S
        # Spark's Python API has no event for the end of a task, so this asks now and then.
        while (silent := _executors_at_work(spark, stages)) and time.monotonic() < deadline:
            time.sleep(0.05)
        for executor, host in silent.items():
            _give_up(spark, executor, host)
    except (Py4JError, TypeError) as error:  # a Spark without these functions
        logger.warning("silent executors cannot be told from others: %s", error)


def give_up_executor(spark: SparkSession, tag: str, partition: int) -> None:
    """Gives up the executor that runs, or ran, that partition of the job that had `tag`.

    For an executor without tasks, whose silence Spark has no cause to notice. Does nothing with
    Spark Connect, and never raises.
    """
    from py4j.protocol import Py4JError

    if not hasattr(spark, "_jsc"):
        return
    store = spark._jsc.sc().statusStore()
    try:
        for stage in _stages_of(spark, tag):
            attempt = store.lastStageAttempt(stage).attemptId()
            tasks = _items(spark, store.taskList(stage, attempt, (1 << 31) - 1))
            if found := [task for task in tasks if task.index() == partition]:
                last = max(found, key=lambda task: task.attempt())
                _give_up(spark, last.executorId(), last.host())
    except (Py4JError, TypeError) as error:  # a Spark without these functions
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


def _items(spark: SparkSession, collection: Any) -> list[Any]:
    return list(spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(collection))


def _give_up(spark: SparkSession, executor: str, host: str) -> None:
    """What Spark does itself when an executor's heartbeat is missing (HeartbeatReceiver)."""
    context, scheduler = spark._jsc.sc(), spark._jvm.org.apache.spark.scheduler
    logger.warning("executor %s on %s does not answer: Spark is to replace it", executor, host)
    context.killAndReplaceExecutor(executor)
    reason = scheduler.ExecutorProcessLost(
        "it does not answer any more", spark._jvm.scala.Option.empty(), False
    )
    message = getattr(scheduler.cluster, "CoarseGrainedClusterMessages$RemoveExecutor")
    context.schedulerBackend().driverEndpoint().send(message(executor, reason))
