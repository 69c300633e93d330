"""What a cluster is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hearth.cluster.driver.reports.reports import ReportOptions
from hearth.cluster.task.node_job import NodeOptions

# For nodes to come, and without progress of a feed: as long as executors are awaited.
WAIT_S = 300.0


@dataclass(frozen=True)
class Plan:
    """What a cluster is made of."""

    template: Mapping[str, Sequence[int]]  # ids of the nodes of each role
    options: NodeOptions = field(default_factory=NodeOptions)
    beside_driver: frozenset[int] = frozenset()  # nodes that no Spark task starts
    release_port: bool = True  # free each node's port just before its main function
    restart: bool = False  # start all nodes again where one, or its executor, is lost
    timeout_s: float = WAIT_S  # for all nodes to come
    datasets: Mapping[str, Any] = field(default_factory=dict)  # frames and sources by name
    reports: ReportOptions = field(default_factory=ReportOptions)
    # Where not 0, restarts may change the number of workers, from this one to the template's.
    least_workers: int = 0
    profile: Any = None  # of Spark's resources, for the tasks that start nodes
    holds: bool = True  # tasks with a profile stay with their nodes, and keep its resources
