"""What must be true of a Spark session before ranks are launched: checked early, said plainly."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Executors may still be registering for this long after the application's start.
_REGISTRATION_WAIT_S = 45.0
# A lost executor's place is taken by a new one within this time, or never.
_REPLACEMENT_WAIT_S = 40.0
# Where a resource manager starts containers, each of these takes so much longer.
_CONTAINER_WAIT_S = 120.0


def check(spark: SparkSession, ranks: int) -> None:
    """Checks that `ranks` tasks of one barrier stage can run at the same time.

    Raises:
        HearthError: they cannot; the message says why and what to change.
    """
    from hearth import HearthError

    if spark.conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        raise HearthError(
            "spark.dynamicAllocation.enabled is true, but the ranks of a training must all stay: "
            "start the session with spark.dynamicAllocation.enabled=false"
        )
    _require_slots(wait_for_slots(spark, ranks), ranks)


def wait_for_replacements(spark: SparkSession, ranks: int) -> None:
    """Waits until `ranks` tasks can run at the same time again, after some were lost.

    Raises:
        HearthError: Spark did not replace them.
    """
    since_start = time.monotonic() - _start_time(spark) if hasattr(spark, "_jsc") else 0.0
    _require_slots(wait_for_slots(spark, ranks, since_start + _REPLACEMENT_WAIT_S), ranks)


def _require_slots(slots: int | None, ranks: int) -> None:
    from hearth import HearthError

    if slots is not None and slots < ranks:
        raise HearthError(
            f"{ranks} ranks need {ranks} task slots at the same time, but the cluster has {slots}: "
            "lower -clusterSize, or give Spark more executors (or cores, or fewer spark.task.cpus)"
        )


def wait_for_slots(
    spark: SparkSession, ranks: int, until_s: float = _REGISTRATION_WAIT_S
) -> int | None:
    """Tasks that can run at once, as soon as that is enough; None where Spark does not tell.

    `until_s`: when to give up, in seconds from the application's start.
    """
    most, master = most_slots(spark), spark.conf.get("spark.master", "")
    if not hasattr(spark, "_jsc") or (most is not None and most < ranks):
        return most
    scala_context = spark._jsc.sc()
    profile = scala_context.resourceProfileManager().defaultResourceProfile()
    # Spark's Python API has no event for a new executor, so this asks now and then.
    by_containers = master.startswith(("yarn", "k8s:"))
    deadline = _start_time(spark) + until_s + (_CONTAINER_WAIT_S if by_containers else 0)
    while (slots := scala_context.maxNumConcurrentTasks(profile)) < ranks:
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return slots


def most_slots(spark: SparkSession) -> int | None:
    """The slots that there will be at most, where the settings say so."""
    master, cpus = spark.conf.get("spark.master", ""), _task_cpus(spark)
    if not master.startswith("yarn"):
        return local_slots(master, cpus)
    executors = int(spark.conf.get("spark.executor.instances", "2"))
    return executors * (int(spark.conf.get("spark.executor.cores", "1")) // cpus)


def local_slots(master: str, task_cpus: int) -> int | None:
    """The slots that a `local[n]` or `local-cluster[n,cores,mb]` master has; None for others."""
    if local := re.fullmatch(r"local\[(\d+)(?:,\d+)?\]", master):
        return int(local[1]) // task_cpus
    if cluster := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master):
        return int(cluster[1]) * (int(cluster[2]) // task_cpus)
    return None


def _task_cpus(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.task.cpus", "1"))


def _start_time(spark: SparkSession) -> float:
    """When the application started, on the monotonic clock."""
    return time.monotonic() - (time.time() - spark._jsc.sc().startTime() / 1000)
