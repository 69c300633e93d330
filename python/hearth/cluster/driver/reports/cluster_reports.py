"""The part of Cluster's public API for results and reports."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hearth.cluster import results, roles
from hearth.cluster.driver.reports.history import SCHEMA, Row
from hearth.cluster.driver.reports.reports import Reports
from hearth.cluster.errors import ClusterError

if TYPE_CHECKING:
    from hearth.cluster.driver.plan import Plan
    from hearth.cluster.driver.start import ClusterStart


class Reporting:
    """The base class of Cluster with the methods for results and reports. Thread-safe."""

    plan: Plan
    spark: Any
    reports: Reports
    _running: ClusterStart | None = None  # None until the first start
    _stops = False  # stop_training() was called; holds after restarts

    @property
    def running(self) -> ClusterStart:
        """The nodes' latest start."""
        if self._running is None:
            raise ClusterError("the cluster has not been started")
        return self._running

    def result(self) -> list[Any]:
        """Calls shutdown(), then returns main_fun's return values by rank; None for ranks that
        returned nothing.

        Supported values: numbers, strings, bytes, NumPy arrays, and lists, tuples and dicts of
        them.

        Raises:
            TypeError: a rank returned an unsupported value, or one of more than 256 MB.
            ClusterError: as shutdown().
        """
        self.shutdown()
        return [self._result_of(*each) for each in enumerate(roles.fed_ids(self.plan.template))]

    def _result_of(self, rank: int, node: int) -> Any:
        pieces = self.running.watch.values(node)
        return self._unpack_result(results.received(rank, pieces)) if pieces else None

    def _unpack_result(self, data: bytes) -> Any:
        return results.unpacked(data)

    @property
    def history(self) -> Any:
        """The metrics reported so far, as a DataFrame of (step, rank, name, value, seconds). `rank`
        is null for nodes that are not ranks; `seconds`: time since the cluster's start."""
        return self.spark.session.createDataFrame(self.history_rows, SCHEMA)

    @property
    def history_rows(self) -> list[Row]:
        """The rows of `history`, in the driver."""
        return self.reports.history.rows()

    def stop_training(self) -> None:
        """Asks the ranks to stop: ctx.should_stop becomes true on them."""
        self._stops = True
        self._pass_on_stop()

    def shutdown(self, ssc: Any = None, grace_s: float = 0.0, timeout_s: float = 0.0) -> None:
        """Ends the cluster; see Cluster.shutdown()."""
        raise NotImplementedError

    def _pass_on_stop(self) -> None:
        """Asks the nodes of the current start to stop, if stop_training() was called."""
        if self._stops and self._running is not None:
            with suppress(RuntimeError):  # the cluster may have ended
                self._running.broadcast({"op": "stop_training"})


def output_here(spark: Any, plan: Plan) -> list[int]:
    """The ids of nodes that share this process's standard error, so that their output is not
    relayed."""
    if not _is_own_stderr():
        return []
    size = sum(map(len, plan.template.values()))
    every = range(size) if spark.is_local() else plan.beside_driver
    return sorted(every)


def _is_own_stderr() -> bool:
    with suppress(Exception):  # a notebook's stream may have no descriptor
        return bool(os.fstat(sys.stderr.fileno()) and sys.stderr.fileno() == 2)
    return False
