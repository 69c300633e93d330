"""Stores the ranks' metrics as rows, one per value."""

from __future__ import annotations

import threading

SCHEMA = "step bigint, rank int, name string, value double, seconds double"
Row = tuple[int, int | None, str, float, float]

# Limit of the number of rows. A metric's series that exceeds its share loses every second row.
_MOST = 500_000
_LEAST_OF_SERIES = 100


class RunHistory:
    """Rows of (step, rank, name, value, seconds). Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[tuple[int | None, str], list[tuple[int, float, float]]] = {}

    def add(self, rank: int | None, step: int, values: dict[str, float], seconds: float) -> None:
        """Adds a report. `rank`: None for nodes that are not ranks."""
        with self._lock:
            for name, value in values.items():
                points = self._series.setdefault((rank, name), [])
                points.append((step, value, seconds))
                if len(points) > max(_LEAST_OF_SERIES, _MOST // len(self._series)):
                    points[:] = points[::-2][::-1]  # drops every second point, but keeps the newest

    def go_back(self, rank: int | None, step: int) -> None:
        """Drops a rank's reports of steps after `step`."""
        with self._lock:
            for (of_rank, _), points in self._series.items():
                if of_rank == rank:
                    points[:] = [point for point in points if point[0] <= step]

    def rows(self) -> list[Row]:
        """The rows, sorted by step, rank and name, then in order of arrival."""
        with self._lock:
            rows = [
                (step, rank, name, value, seconds)
                for (rank, name), points in self._series.items()
                for step, value, seconds in points
            ]
        return sorted(rows, key=lambda row: (row[0], -1 if row[1] is None else row[1], row[2]))
