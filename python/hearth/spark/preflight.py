"""What must be true of a Spark session before ranks are launched: checked early, said plainly."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from hearth.spark.slots import SlotWait

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Executors may still be registering for this long after the application's start.
_REGISTRATION_WAIT_S = 45.0
# Where a resource manager starts containers, they take so much longer.
_CONTAINER_WAIT_S = 120.0


def check(spark: SparkSession, ranks: int, tell: Callable[[str], None] = lambda line: None) -> None:
    """Checks that `ranks` tasks of one barrier stage can run at the same time.

    Waits while executors may still be registering; `tell` gets a line of how that stands.

    Raises:
        HearthError: they cannot; the message says why and what to change.
    """
    from hearth import HearthError

    if spark.conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        raise HearthError(
            "spark.dynamicAllocation.enabled is true, but the ranks of a training must all stay: "
            "start the session with spark.dynamicAllocation.enabled=false"
        )
    SlotWait(spark, ranks, tell, _registration_s(spark)).wait()


def _registration_s(spark: SparkSession) -> float:
    """For how long from now on executors may still be registering for the first time."""
    if not hasattr(spark, "_jsc"):
        return 0.0
    by_containers = spark.conf.get("spark.master", "").startswith(("yarn", "k8s:"))
    wait_s = _REGISTRATION_WAIT_S + (_CONTAINER_WAIT_S if by_containers else 0.0)
    age_s = time.time() - spark._jsc.sc().startTime() / 1000
    return max(0.0, wait_s - age_s)
