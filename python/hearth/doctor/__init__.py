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
        tasks: number of concurrent tasks, by default all slots, at most 200. Executors without a
            task are not examined.

    Returns:
        The findings of all checks; those with level `problem` need action.

    Raises:
        HearthError: so many tasks cannot run at the same time.
    """
    from hearth.doctor import checks, cluster

    return checks.judge(cluster.survey(spark, tasks))
