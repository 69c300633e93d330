"""The resources and the ids of the current Spark task."""

from __future__ import annotations

import sys


def task_gpus() -> list[str]:
    """The addresses of the task's GPUs; empty outside of a task or if Spark schedules no GPUs."""
    if "pyspark" not in sys.modules:
        return []
    from pyspark import TaskContext

    context = TaskContext.get()
    resources = context.resources() if context is not None else {}
    return list(resources["gpu"].addresses) if "gpu" in resources else []


def partition_id() -> int:
    """The partition of the current Spark task; 0 outside of Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def attempt_id() -> int:
    """The id of the current task attempt, unique in the application; 0 outside of Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.taskAttemptId() if context is not None else 0
