"""The task that runs here, and what Spark granted it."""

from __future__ import annotations

import sys


def task_gpus() -> list[str]:
    """The addresses of the task's GPUs; empty outside of a task, and where Spark schedules none."""
    if "pyspark" not in sys.modules:
        return []
    from pyspark import TaskContext

    context = TaskContext.get()
    resources = context.resources() if context is not None else {}
    return list(resources["gpu"].addresses) if "gpu" in resources else []


def partition_id() -> int:
    """The partition of the Spark task that runs this; 0 outside of Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0
