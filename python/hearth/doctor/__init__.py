"""`hearth doctor`: checks whether driver and executors meet the requirements of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hearth.doctor.findings import Finding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Finding", "examine"]


def examine(spark: SparkSession, tasks: int | None = None) -> list[Finding]:
    """Examines the driver and the session's executors; for `hearth doctor` and notebooks.

    Args:
        spark: a session, classic or Connect.
        tasks: number of concurrent tasks, at most 200 (default: all slots). Only executors that run
            a task are examined.

    Returns:
        The findings of all checks; act on findings with level `problem`.

    Raises:
        HearthError: `tasks` tasks cannot run at the same time.
    """
    from hearth.doctor import checks, cluster

    return checks.judge(cluster.survey(spark, tasks))
