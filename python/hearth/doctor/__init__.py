"""`hearth doctor`: whether driver and executors have what a training needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hearth.doctor.findings import Finding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Finding", "examine"]


def examine(spark: SparkSession, tasks: int | None = None) -> list[Finding]:
    """Examines the driver and the session's executors; of `hearth doctor` and for notebooks.

    Args:
        spark: a session, classic or Connect.
        tasks: how many tasks look at once, by default as many as can run, 200 at most. Executors
            that get no task are not examined.

    Returns:
        What was found, check by check; those with `problem` need something done.

    Raises:
        HearthError: that many tasks cannot run at the same time.
    """
    from hearth.doctor import checks, cluster

    return checks.judge(cluster.survey(spark, tasks))
