"""Derives from Spark's settings why nodes of a cluster do not start."""

from __future__ import annotations

import math
import time
from typing import Any

from hearth.cluster.errors import ClusterError
from hearth.cluster.task.node_job import NodeOptions
from hearth.spark.dynamic_allocation import SETTING, is_on
from hearth.spark.profiles import described, task_cpus
from hearth.spark.slots import is_local, local_slots, slots_now

# Poll interval: Spark's Python API has no event for a new executor.
_LOOK_S = 0.1


def fixed_slots(spark: Any) -> int | None:
    """The number of task slots, if it cannot change; else None."""
    return local_slots(spark.conf("spark.master", ""), task_cpus(spark.conf, spark.profile))


def likely_reason(spark: Any, needed: int, coordinator: tuple[str, int]) -> str:
    """The likely reason why some of the `needed` tasks have not started their nodes, with the
    remedy.

    Args:
        spark: a spark_access().
        needed: number of tasks of the start job.
        coordinator: (host, port) to which executors must be able to connect.
    """
    slots = spark.slots()
    if slots is None or slots >= needed:
        has = "Spark does not report its number of" if slots is None else f"the cluster has {slots}"
        return (
            f"{has} task slots: other jobs may hold them, or executors cannot reach the "
            f"driver at {coordinator[0]}:{coordinator[1]}"
        )
    master = spark.conf("spark.master", "")
    if is_local(master):
        cores = math.ceil(needed * task_cpus(spark.conf, spark.profile))
        return (
            f"each node needs a task slot, but the master {master} has {slots} for {needed} nodes: "
            f"use local[{cores}], or lower the number of nodes (workers, num_executors, num_proc)"
        )
    kind = f" of their {described(spark.profile)}" if spark.profile is not None else ""
    text = (
        f"each node needs a task slot{kind}, but the cluster has {slots} for {needed} nodes: "
        "give Spark more executors or cores, lower spark.task.cpus or the number of nodes "
        "(workers, num_executors, num_proc), or check that executors of this memory "
        f"({spark.conf('spark.executor.memory', '1g')}) fit on the hosts"
    )
    if is_on(spark.conf):
        text += (
            f"; {SETTING} is true: set it to false, or "
            f"spark.dynamicAllocation.maxExecutors to {needed} or more"
        )
    return text


def check_feeders(spark: Any, options: NodeOptions, nodes: int, wait_s: float = 0.0) -> None:
    """Raises ClusterError if the tasks of the nodes hold all cores, so that no task can send rows.

    Waits up to `wait_s` seconds for Spark to replace executors. Does not raise if more executors
    may start, or if nodes have dedicated executors.
    """
    profile = spark.profile
    unknown = not options.holds or profile.executorResources or is_on(spark.conf)
    if unknown or not hasattr(spark.session, "_jsc"):
        return
    each, taken = task_cpus(spark.conf), nodes * task_cpus(spark.conf, profile)
    until = time.monotonic() + wait_s
    while (cores := (slots_now(spark.session) or 0) * each) - taken < each:
        if time.monotonic() >= until:
            break
        time.sleep(_LOOK_S)
    else:
        return
    raise ClusterError(
        f"the nodes hold {taken} of the executors' {cores} cores ({described(profile)}), so "
        "no task can send them rows: leave cores to other tasks, or let the nodes read files"
    )
