"""How far the rows of feed jobs have come: counted in the node, known in the driver."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

# The driver hears at least this often how many rows of a partition were taken.
_TELL_S = 0.5


class RowCount:
    """What a program has taken of one feed, and what of it is safe. Any thread may use it.

    A partition is safe when all of its rows were taken before a commit().
    """

    def __init__(self, report: Callable[[dict[str, Any]], None]):
        """`report` sends an event to the driver."""
        self._report = report
        self._lock = threading.Lock()
        self._taken = 0
        self._safe = 0  # of the rows taken, in their order
        # Complete partitions that are not safe: (rows taken at their end, feed job, partition).
        self._complete: deque[tuple[int, str, int]] = deque()
        self._told = 0.0

    def take(self, partition: Any, rows: int) -> None:
        """The program was given `rows` more of a partition."""
        with self._lock:
            self._taken += rows
            partition.taken += rows
            now = time.monotonic()
            if now - self._told < _TELL_S:
                return
            self._told = now
        self._tell_rows(partition)

    def complete(self, partition: Any) -> None:
        """All rows of a partition were taken."""
        self._tell_rows(partition)
        with self._lock:
            self._complete.append((self._taken, partition.feed, partition.index))
        self._tell_safe()

    def commit(self) -> None:
        """All rows taken so far are safe."""
        with self._lock:
            self._safe = self._taken
        self._tell_safe()

    def _tell_rows(self, partition: Any) -> None:
        where = {"feed": partition.feed, "partition": partition.index}
        self._report({"event": "rows", **where, "rows": partition.taken})

    def _tell_safe(self) -> None:
        safe: dict[str, list[int]] = {}
        with self._lock:
            while self._complete and self._complete[0][0] <= self._safe:
                _, feed, index = self._complete.popleft()
                safe.setdefault(feed, []).append(index)
        for feed, partitions in safe.items():
            self._report({"event": "safe", "feed": feed, "partitions": partitions})


class Ledger:
    """What nodes have told of each feed job between open() and close(). Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, dict[int, int]] = {}
        self._safe: dict[str, set[int]] = {}

    def open(self, feed: str) -> None:
        with self._lock:
            self._rows[feed], self._safe[feed] = {}, set()

    def close(self, feed: str) -> None:
        """Forgets it."""
        with self._lock:
            self._rows.pop(feed, None)
            self._safe.pop(feed, None)

    def note(self, rank: int, event: Mapping[str, Any]) -> None:
        """Takes an event of the RowCount of node `rank`."""
        with self._lock:
            feed = event["feed"]
            if feed not in self._rows:
                return
            if event["event"] == "safe":
                self._safe[feed].update(event["partitions"])
                return
            # Every node has a replay of its own.
            index = event["partition"] if event["partition"] >= 0 else -1 - rank
            self._rows[feed][index] = event["rows"]

    def taken(self, feed: str) -> int:
        """Rows of the job that programs have taken, as of a moment ago."""
        with self._lock:
            return sum(self._rows.get(feed, {}).values())

    def safe(self, feed: str) -> frozenset[int]:
        """The partitions of the job whose rows are safe."""
        with self._lock:
            return frozenset(self._safe.get(feed, ()))
