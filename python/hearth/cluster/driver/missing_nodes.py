"""Why nodes of a cluster may not come up, as far as Spark's settings tell."""

from __future__ import annotations

from typing import Any

from hearth.spark.dynamic_allocation import SETTING, is_on
from hearth.spark.slots import local_slots, task_cpus


def fixed_slots(spark: Any) -> int | None:
    """The task slots of a Spark that cannot get more; None for others."""
    return local_slots(spark.conf("spark.master", ""), task_cpus(spark.conf))


def likely_reason(spark: Any, needed: int, coordinator: tuple[str, int]) -> str:
    """Why not all of the `needed` start tasks have brought a node, and what to do.

    Args:
        spark: see spark_access.
        needed: tasks of the start job.
        coordinator: (host, port) to which executors must be able to connect.
    """
    slots = spark.slots()
    if slots is None or slots >= needed:
        has = "Spark does not tell how many" if slots is None else f"the cluster has {slots}"
        return (
            f"{has} task slots: perhaps other jobs hold them, or executors cannot reach the "
            f"driver at {coordinator[0]}:{coordinator[1]}"
        )
    text = (
        f"each node needs a task slot of its own, but the cluster has {slots} for {needed} nodes: "
        "give Spark more executors or cores, lower spark.task.cpus or num_executors, or look "
        f"whether executors of this memory ({spark.conf('spark.executor.memory', '1g')}) fit on "
        "the hosts"
    )
    if is_on(spark.conf):
        text += (
            f"; {SETTING} is true: set it to false, or "
            f"spark.dynamicAllocation.maxExecutors to {needed} or more"
        )
    return text
