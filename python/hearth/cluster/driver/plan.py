"""The configuration of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any

from hearth.cluster.driver.reports.reports import ReportOptions
from hearth.cluster.task.node_job import NodeOptions

# Default time limit for the start of nodes, and for a feed without progress. It equals the time
# limit of the wait for executors.
WAIT_S = 300.0


@dataclass(frozen=True)
class Plan:
    """The configuration of a cluster."""

    template: Mapping[str, Sequence[int]]  # node ids by role
    options: NodeOptions = field(default_factory=NodeOptions)
    beside_driver: frozenset[int] = frozenset()  # nodes that run in the driver, not in Spark tasks
    release_port: bool = True  # free each node's port just before its main function
    restart: bool = False  # restart all nodes if a node or an executor is lost
    timeout_s: float = WAIT_S  # seconds for all nodes to start
    datasets: Mapping[str, Any] = field(default_factory=dict)  # frames and sources by name
    reports: ReportOptions = field(default_factory=ReportOptions)
    # If not 0, a start may use fewer workers than the template, but at least this number.
    least_workers: int = 0
    profile: Any = None  # resource profile of the tasks that start nodes
    holds: bool = True  # a task with a profile holds its resources until its node ends


def named_datasets(datasets: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Checks the argument `datasets` of run(); None and an empty list are no datasets. Raises
    TypeError if it is not a dict."""
    if datasets is None or (isinstance(datasets, Sized) and len(datasets) == 0):
        return {}
    if not isinstance(datasets, Mapping):
        raise TypeError(
            f"datasets is a {type(datasets).__name__}, but must be a dict of DataFrames or sources "
            'by name: pass datasets={"train": rows}'
        )
    return datasets
