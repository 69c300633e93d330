"""The plan of a launch, and the assignment of files to ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hearth.caffe_jobs.remote_files import RemotePlan
from hearth.errors import HearthError
from hearth.sources.rank_rows import RankRows
from hearth.spark.executors import rank_hosts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Event = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """The job that all ranks share, and their rows by stream ("train", "test").

    `datasets`: identifies the rows, for snapshots. `remote`: access to the job's remote files.
    `first_generation`: 0 for a new run.
    """

    world: int
    job: dict[str, Any]
    files: dict[str, RankRows] = field(default_factory=dict)
    frames: dict[str, DataFrame] = field(default_factory=dict)
    datasets: str = ""
    remote: RemotePlan | None = None
    first_generation: int = 0
    hosts: tuple[frozenset[str], ...] = ()  # per rank: hosts that store its files


def assign_files(spark: SparkSession, plan: Plan, on_event: Callable[[Event], None]) -> Plan:
    """The plan with files assigned to ranks by the executors' current hosts.

    Restarted ranks keep their files on any host, as other rows would be another training.
    """
    if not any(rows.placement(plan.world) for rows in plan.files.values()):
        return plan
    # The ranks of a DataFrame are its partitions, in order.
    hosts = [] if plan.frames else rank_hosts(spark, plan.world)
    files = {name: rows.placed(hosts) for name, rows in plan.files.items()}
    for rows in files.values():
        if text := rows.placement(plan.world):
            on_event({"event": "log", "level": "I", "text": text})
    return replace(plan, files=files, hosts=tuple(hosts))


def pinned(spark: SparkSession, files: dict[str, RankRows]) -> dict[str, RankRows]:
    """The same with a snapshot of the file lists; raises HearthError if they cannot be read."""
    try:
        return {name: rows.pin(spark) for name, rows in files.items()}
    except HearthError:
        raise
    except (ValueError, OSError) as error:
        raise HearthError(str(error)) from None
