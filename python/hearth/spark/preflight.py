"""What must be true of a Spark session before ranks are launched: checked early, said plainly."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from hearth.spark.dynamic_allocation import refuse_for_ranks
from hearth.spark.executors import known_executors
from hearth.spark.slots import SlotWait

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Executors may still be registering for this long after the application's start.
_REGISTRATION_WAIT_S = 45.0
# Where a resource manager starts containers, they take so much longer.
_CONTAINER_WAIT_S = 120.0
# An executor that was lost, perhaps to the job before, may come again within this time.
_REPLACEMENT_WAIT_S = 60.0


def check(spark: SparkSession, ranks: int, tell: Callable[[str], None] = lambda line: None) -> None:
    """Checks that `ranks` tasks of one barrier stage can run at the same time.

    Waits while executors may still be registering, for the first time or in place of one that was
    just lost; `tell` gets a line of how that stands.

    Raises:
        HearthError: they cannot; the message says why and what to change.
    """
    refuse_for_ranks(spark.conf.get)
    limit_s = max(_registration_s(spark), _replacement_s(spark))
    SlotWait(spark, ranks, tell, limit_s).wait()


def _registration_s(spark: SparkSession) -> float:
    """For how long from now on executors may still be registering for the first time."""
    if not hasattr(spark, "_jsc"):
        return 0.0
    by_containers = spark.conf.get("spark.master", "").startswith(("yarn", "k8s:"))
    wait_s = _REGISTRATION_WAIT_S + (_CONTAINER_WAIT_S if by_containers else 0.0)
    age_s = time.time() - spark._jsc.sc().startTime() / 1000
    return max(0.0, wait_s - age_s)


def _replacement_s(spark: SparkSession) -> float:
    """For how long from now on an executor may come in place of the one that was lost last."""
    from py4j.protocol import Py4JError

    if not hasattr(spark, "_jsc"):
        return 0.0
    try:
        removals = [each.removeTime() for each in known_executors(spark, active_only=False)]
        times = [removal.get().getTime() / 1000 for removal in removals if removal.isDefined()]
    except (Py4JError, TypeError):  # a Spark without these functions
        return 0.0
    age_s = time.time() - max(times, default=0.0)
    return max(0.0, _REPLACEMENT_WAIT_S - age_s)


def unused_cores(spark: SparkSession) -> str | None:
    """A warning where executors have more cores than a rank uses, with what to set."""
    if not hasattr(spark, "_jsc"):
        return None
    used = int(spark.conf.get("spark.task.cpus", "1"))
    executors = known_executors(spark, active_only=True)
    cores = max((executor.totalCores() for executor in executors), default=0)
    if cores <= used or spark.conf.get("spark.master", "").startswith("local["):
        return None
    return (
        f"executors have {cores} cores, and a rank uses {used} of them (spark.task.cpus): it "
        f"computes with as many threads, and several ranks may share an executor; set "
        f"spark.task.cpus={cores} for one rank per executor that uses them all"
    )
