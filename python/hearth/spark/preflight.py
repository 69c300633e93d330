"""Checks a Spark session before ranks are launched."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from hearth.spark.dynamic_allocation import refuse_for_ranks
from hearth.spark.executors import known_executors
from hearth.spark.profiles import task_cpus
from hearth.spark.slots import SlotWait

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import SparkSession


def check(
    spark: SparkSession,
    ranks: int,
    notify: Callable[[str], None] = lambda line: None,
    profile: ResourceProfile | None = None,
) -> None:
    """Checks that `ranks` tasks of one barrier stage can run at the same time.

    Waits for executors that may still register, initially or as replacements; `notify` is called
    with status lines.

    Raises:
        HearthError: the tasks cannot run at the same time, or not within
            `spark.hearth.executorWait`; the message has the reason and the remedy.
    """
    refuse_for_ranks(spark.conf.get)
    SlotWait(spark, ranks, notify, profile=profile).wait(_awaited_s(spark))


def _awaited_s(spark: SparkSession) -> float:
    """How long Spark has been starting executors: since the application's start, or since an
    executor was last lost.
    """
    from py4j.protocol import Py4JError

    if not hasattr(spark, "_jsc"):
        return 0.0
    begun_ms = [spark._jsc.sc().startTime()]
    with suppress(Py4JError, TypeError):  # this Spark version lacks these functions
        removals = [each.removeTime() for each in known_executors(spark, active_only=False)]
        begun_ms += [removal.get().getTime() for removal in removals if removal.isDefined()]
    return max(0.0, time.time() - max(begun_ms) / 1000)


def unused_cores(spark: SparkSession, profile: ResourceProfile | None = None) -> str | None:
    """A warning, with the setting to change, if executors have more cores than a rank uses."""
    if not hasattr(spark, "_jsc"):
        return None
    used = task_cpus(spark.conf.get, profile)
    executors = known_executors(spark, active_only=True)
    cores = max((executor.totalCores() for executor in executors), default=0)
    if cores <= used or spark.conf.get("spark.master", "").startswith("local["):
        return None
    return (
        f"executors have {cores} cores, and a rank uses {used} of them (spark.task.cpus): it "
        f"computes with as many threads, and several ranks may share an executor; set "
        f"spark.task.cpus={cores} for one rank per executor that uses all cores"
    )
