"""What ranks reported, as rows: one for each value."""

from __future__ import annotations

import threading

SCHEMA = "step bigint, rank int, name string, value double, seconds double"
Row = tuple[int, int | None, str, float, float]

# Rows of all metrics together; where there are more, every second one of each metric goes.
_MOST = 500_000
_LEAST_OF_SERIES = 100


class RunHistory:
    """Rows of (step, rank, name, value, seconds). Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[tuple[int | None, str], list[tuple[int, float, float]]] = {}

    def add(self, rank: int | None, step: int, values: dict[str, float], seconds: float) -> None:
        """Takes a report; `rank` is None for a node that is no rank."""
        with self._lock:
            for name, value in values.items():
                points = self._series.setdefault((rank, name), [])
                points.append((step, value, seconds))
                if len(points) > max(_LEAST_OF_SERIES, _MOST // len(self._series)):
                    points[:] = points[::-2][::-1]  # from the end: the newest stays

    def go_back(self, rank: int | None, step: int) -> None:
        """Forgets what a rank reported of later steps than `step`."""
        with self._lock:
            for (of_rank, _), points in self._series.items():
                if of_rank == rank:
                    points[:] = [point for point in points if point[0] <= step]

    def rows(self) -> list[Row]:
        """By step, rank and name; a metric's values of one step as they came."""
        with self._lock:
            rows = [
                (step, rank, name, value, seconds)
                for (rank, name), points in self._series.items()
                for step, value, seconds in points
            ]
        return sorted(rows, key=lambda row: (row[0], -1 if row[1] is None else row[1], row[2]))
