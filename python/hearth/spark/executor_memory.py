"""Checks executors' memory on clusters that kill containers above their memory limit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hearth.spark.executors import known_executors
from hearth.spark.failures import memory_kill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long the resource manager may take to report to Spark why a container ended.
_REASON_WAIT_S = 5.0
_ADDRESS_SETTING = "spark.executor.pyspark.memory"


def is_limited(spark: SparkSession) -> bool:
    """Whether the cluster limits executors' memory, as YARN and Kubernetes do."""
    return spark.conf.get("spark.master", "").startswith(("yarn", "k8s:"))


def room_mb(spark: SparkSession) -> int | None:
    """An executor's memory limit outside of its JVM's heap; None if unlimited or unknown."""
    if not hasattr(spark, "_jsc") or not is_limited(spark):
        return None
    conf = spark.sparkContext.getConf()
    in_mb = spark._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsMb
    python = int(in_mb(conf.get(_ADDRESS_SETTING, "0m")))
    if named := conf.get("spark.executor.memoryOverhead", ""):
        return int(in_mb(named)) + python
    heap = int(in_mb(conf.get("spark.executor.memory", "1g")))
    on_kubernetes = conf.get("spark.kubernetes.memoryOverheadFactor", "0.1")
    usual = on_kubernetes if conf.get("spark.master", "").startswith("k8s:") else "0.1"
    share = float(conf.get("spark.executor.memoryOverheadFactor", usual))
    least = int(in_mb(conf.get("spark.executor.minMemoryOverhead", "384m")))
    return max(least, int(heap * share)) + python


def too_little(spark: SparkSession, need_mb: int) -> str | None:
    """A warning, with the setting to change, if a trainer needs more memory than executors have."""
    left = room_mb(spark)
    if left is None or left >= need_mb:
        return None
    return (
        f"a trainer of this net needs about {need_mb} MB outside of the executor's JVM, but only "
        f"{left} MB are left: the cluster may end its container; set "
        f"spark.executor.memoryOverhead={_rounded(need_mb)}m"
    )


def address_limit(spark: SparkSession) -> str | None:
    """A warning if Spark limits the address space of Python workers, and thus of trainers."""
    named = spark.conf.get(_ADDRESS_SETTING, "")
    if not named:
        return None
    return (
        f"{_ADDRESS_SETTING}={named} also limits the address space of the trainer, which "
        "is much larger than its memory: unset it, and raise spark.executor.memoryOverhead instead"
    )


def _rounded(need_mb: int) -> int:
    return -(-need_mb * 5 // 4 // 256) * 256


class RemovedExecutors:
    """Finds the reasons why executors were lost since this object was created. Not thread-safe."""

    def __init__(self, spark: SparkSession):
        self._spark = spark
        self._limited = hasattr(spark, "_jsc") and is_limited(spark)
        self._known = set(self._removed()) if self._limited else set()

    def memory_kill(self) -> str | None:
        """The resource manager's message, if it killed an executor for exceeding its memory limit.

        Waits a few seconds for an executor to be removed, because Spark receives the reason last.
        """
        if not self._limited:
            return None
        deadline = time.monotonic() + _REASON_WAIT_S
        # Spark's Python API has no event for the end of an executor, so poll.
        while not (new := self._new()) and time.monotonic() < deadline:
            time.sleep(0.1)
        self._known |= set(new)
        return next(filter(None, map(memory_kill, new.values())), None)

    def _new(self) -> dict[str, str]:
        return {key: text for key, text in self._removed().items() if key not in self._known}

    def _removed(self) -> dict[str, str]:
        from py4j.protocol import Py4JError

        found: dict[str, str] = {}
        try:
            for executor in known_executors(self._spark, active_only=False):
                reason = executor.removeReason()
                if not executor.isActive() and reason.isDefined():
                    found[str(executor.id())] = str(reason.get())
        except (Py4JError, TypeError):  # this Spark version lacks these functions
            return {}
        return found
