"""An application's executors: the current ones, and the expected number."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def known_executors(spark: SparkSession, active_only: bool) -> list[Any]:
    """A classic session's ExecutorSummary objects, including the driver's.

    Raises:
        Py4JError, TypeError: this Spark version lacks these functions.
    """
    found = spark._jsc.sc().statusStore().executorList(active_only)
    return [found.apply(number) for number in range(found.size())]


def rank_hosts(spark: SparkSession, world: int) -> list[frozenset[str]]:
    """Assigns the current executors' hosts (name and address) to ranks round-robin.

    Empty if unknown. Spark may still start a rank on another host.
    """
    if not hasattr(spark, "_jsc"):
        return []
    with suppress(Exception):  # this Spark version may lack these functions
        found = known_executors(spark, active_only=True)
        executors = [e for e in found if str(e.id()) != "driver"] or found
        hosts = sorted(str(e.hostPort()).rpartition(":")[0] for e in executors)
        names = [_names(host) for host in hosts]
        return [names[rank % len(names)] for rank in range(world)] if names else []
    return []


def _names(host: str) -> frozenset[str]:
    """A host's name and address: Spark reports executors by name, but tasks by address."""
    try:
        return frozenset((host, socket.gethostbyname(host)))
    except OSError:
        return frozenset((host,))


def executor_count(spark: SparkSession) -> int:
    """The number of executors in the settings, or otherwise of current executors; at least 1.

    This is the default number of ranks. With Spark Connect, only the settings are known.
    `local[...]` has one executor.
    """
    get = spark.conf.get
    master = get("spark.master", "")
    if found := re.match(r"local-cluster\[\s*(\d+)", master):
        return int(found[1])
    if master.startswith("local"):
        return 1
    usual = "2" if master.startswith("yarn") else "0"  # Spark's default
    if instances := int(get("spark.executor.instances", None) or usual):
        return instances
    most, each = get("spark.cores.max", None), get("spark.executor.cores", None)
    if most and each:
        return max(1, int(most) // int(each))
    if not hasattr(spark, "_jsc"):
        return 1
    return max(1, len(known_executors(spark, active_only=True)) - 1)  # the list includes the driver
