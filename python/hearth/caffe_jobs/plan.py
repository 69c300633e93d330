"""The plan of a launch, and how files are assigned to ranks."""

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
    """The job of all ranks, and the sources of their rows by stream ("train", "test").

    `datasets`: identifies the rows in snapshots. `remote`: access to the job's remote files.
    `first_generation`: generation of the first attempt; 0 unless YARN has restarted the driver.
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
    """The plan with files assigned to ranks, preferring local files on the executors' current
    hosts. Restarted ranks keep their files even on other hosts, because other rows would change the
    training.
    """
    if not any(rows.placement(plan.world) for rows in plan.files.values()):
        return plan
    # With a DataFrame, ranks are its partitions in order, so hosts cannot be chosen.
    hosts = [] if plan.frames else rank_hosts(spark, plan.world)
    files = {name: rows.placed(hosts) for name, rows in plan.files.items()}
    for rows in files.values():
        if text := rows.placement(plan.world):
            on_event({"event": "log", "level": "I", "text": text})
    return replace(plan, files=files, hosts=tuple(hosts))


def pinned(spark: SparkSession, files: dict[str, RankRows]) -> dict[str, RankRows]:
    """Pins each source's current files. Raises HearthError if the files cannot be listed or
    read."""
    try:
        return {name: rows.pin(spark) for name, rows in files.items()}
    except HearthError:
        raise
    except (ValueError, OSError) as error:
        raise HearthError(str(error)) from None
