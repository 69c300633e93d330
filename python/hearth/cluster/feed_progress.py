"""How far the rows of a feed have come, as its node counts them; feed_ledger.py keeps them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
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
        # Partitions that came to an end and are not safe: (rows taken by then, feed job, partition,
        # claim).
        self._complete: deque[tuple[int, str, int, int]] = deque()
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
        """No more rows of a partition come here: all were taken, or who brought them is gone."""
        self._tell_rows(partition)
        with self._lock:
            end = (self._taken, partition.feed, partition.index, partition.claim)
            self._complete.append(end)
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
        safe: dict[str, list[tuple[int, int]]] = {}
        with self._lock:
            while self._complete and self._complete[0][0] <= self._safe:
                _, feed, index, claim = self._complete.popleft()
                safe.setdefault(feed, []).append((index, claim))
        for feed, partitions in safe.items():
            self._report({"event": "safe", "feed": feed, "partitions": partitions})
