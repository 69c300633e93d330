"""What must be true of a Spark session before ranks are launched: checked early, said plainly."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Executors of a session that was just made may still be registering.
_REGISTRATION_WAIT_S = 20.0


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
    slots = wait_for_slots(spark, ranks)
    if slots is not None and slots < ranks:
        raise HearthError(
            f"{ranks} ranks need {ranks} task slots at the same time, but the cluster has {slots}: "
            "lower -clusterSize, or give Spark more executors (or cores, or fewer spark.task.cpus)"
        )


def wait_for_slots(spark: SparkSession, ranks: int) -> int | None:
    """Tasks that can run at once, as soon as that is enough; None where Spark does not tell."""
    if not hasattr(spark, "_jsc"):
        local = re.fullmatch(r"local\[(\d+).*\]", spark.conf.get("spark.master", ""))
        return int(local[1]) if local else None
    context = spark.sparkContext
    count = _slot_counter(spark)
    if count() >= ranks or context.master.startswith("local["):
        return count()
    # Spark's Python API has no event for a new executor, so this asks now and then.
    deadline = time.monotonic() + _REGISTRATION_WAIT_S
    while count() < ranks and time.monotonic() < min(deadline, _start_time(spark) + 60):
        time.sleep(0.2)
    return count()


def _slot_counter(spark: SparkSession):
    scala_context = spark._jsc.sc()
    profile = scala_context.resourceProfileManager().defaultResourceProfile()
    return lambda: scala_context.maxNumConcurrentTasks(profile)


def _start_time(spark: SparkSession) -> float:
    """When the application started, on the monotonic clock."""
    return time.monotonic() - (time.time() - spark._jsc.sc().startTime() / 1000)
