"""The executors of an application: those that Spark knows, and how many there will be."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def known_executors(spark: SparkSession, active_only: bool) -> list[Any]:
    """Spark's ExecutorSummary objects, the driver's among them; of a classic session.

    Raises:
        Py4JError, TypeError: a Spark without these functions.
    """
    found = spark._jsc.sc().statusStore().executorList(active_only)
    return [found.apply(number) for number in range(found.size())]


def rank_hosts(spark: SparkSession, world: int) -> list[frozenset[str]]:
    """The hosts, by name and address, of the executors that run now, for `world` ranks in turn.

    None where nobody knows. A rank may be started elsewhere all the same: Spark decides.
    """
    if not hasattr(spark, "_jsc"):
        return []
    with suppress(Exception):  # whatever this Spark does not have
        found = known_executors(spark, active_only=True)
        executors = [e for e in found if str(e.id()) != "driver"] or found
        hosts = sorted(str(e.hostPort()).rpartition(":")[0] for e in executors)
        names = [_names(host) for host in hosts]
        return [names[rank % len(names)] for rank in range(world)] if names else []
    return []


def _names(host: str) -> frozenset[str]:
    """Spark tells executors by name, and their tasks by the address that the driver sees."""
    try:
        return frozenset((host, socket.gethostbyname(host)))
    except OSError:
        return frozenset((host,))


def executor_count(spark: SparkSession) -> int:
    """The executors that the settings promise, else those that there are now; at least 1.

    A training has as many ranks by default. Spark Connect tells of settings alone. `local[...]` is
    one executor.
    """
    get = spark.conf.get
    master = get("spark.master", "")
    if found := re.match(r"local-cluster\[\s*(\d+)", master):
        return int(found[1])
    if master.startswith("local"):
        return 1
    usual = "2" if master.startswith("yarn") else "0"  # Spark's own default there
    if instances := int(get("spark.executor.instances", None) or usual):
        return instances
    most, each = get("spark.cores.max", None), get("spark.executor.cores", None)
    if most and each:
        return max(1, int(most) // int(each))
    if not hasattr(spark, "_jsc"):
        return 1
    return max(1, len(known_executors(spark, active_only=True)) - 1)  # the driver is among them
