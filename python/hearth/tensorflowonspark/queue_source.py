"""The rows of a TFManager's queue, for programs that fill it themselves."""

from __future__ import annotations

from typing import Any

from hearth.rows.column_results import ColumnResults
from hearth.tensorflowonspark import marker


class QueueSource:
    """The rows of a TFManager's queue, one element each; None ends the feed."""

    def __init__(self, queue: Any, results: Any):
        self._queue = queue
        self._results = results
        self.ended = False

    def take(self, count: int, across_partitions: bool, arrays: bool = False) -> list[list[Any]]:
        """Waits for up to `count` rows; without `across_partitions` only those of one partition."""
        rows: list[Any] = []
        while len(rows) < count:
            item = self._queue.get(block=True)
            self._queue.task_done()
            if item is None:
                self.ended = True
                break
            if not isinstance(item, marker.Marker):
                rows.append(item)
            elif rows and not across_partitions:
                break
        return [rows]

    def put_results(self, results: list[Any] | ColumnResults) -> None:
        """Adds one result per row to the queue of results."""
        for item in results if isinstance(results, list) else results.rows():
            self._results.put(item, block=True)

    taken = 0

    def commit(self, rows: int | None = None) -> None:
        """Does nothing, because no sender would repeat the rows."""

    def terminate(self) -> None:
        """Drains the queue; the program that fills the queue must check the manager's state."""
        while not self._queue.empty():
            self._queue.get()
            self._queue.task_done()
