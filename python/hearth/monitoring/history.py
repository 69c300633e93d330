"""A training's curves in memory, for display on a page."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from typing import Any

# A point of a curve or a message, from hearth.native._core.RunRecord: seconds since 1970,
# iteration, name, and a number or a string.
Point = tuple[float, int, str, float | str]

# Maximum number of points per curve, about a chart's width; above it, every second point is
# dropped.
_MOST_POINTS = 500
_MOST_MESSAGES = 100


class History:
    """Curves, messages and facts of one training. Thread-safe."""

    def __init__(self, title: str):
        self._lock = threading.Lock()
        self._series: dict[str, list[list[float | None]]] = {}
        self._messages: list[tuple[float, int, str]] = []
        self._facts: dict[str, Any] = {"title": title}

    def set_facts(self, **facts: Any) -> None:
        """Sets facts that the page shows besides curves: state, iteration, max_iter, eta_s."""
        with self._lock:
            self._facts.update(facts)

    def add(self, back_to: int | None, points: Iterable[Point]) -> None:
        """Adds RunRecord.take()'s points; drops points after iteration `back_to`."""
        with self._lock:
            if back_to is not None:
                self._forget_after(back_to)
            for at, step, tag, said in points:
                if isinstance(said, str):
                    self._messages.append((at, step, said))
                    del self._messages[:-_MOST_MESSAGES]
                else:
                    self._add(tag, step, said)

    def snapshot(self) -> dict[str, Any]:
        """A copy of all data, for JSON, with None for NaN and infinity."""
        with self._lock:
            return {
                **self._facts,
                "series": {tag: list(points) for tag, points in self._series.items()},
                "messages": list(self._messages),
            }

    def _add(self, tag: str, step: int, value: float) -> None:
        points = self._series.setdefault(tag, [])
        points.append([step, value if math.isfinite(value) else None])
        if len(points) > _MOST_POINTS:
            # Counts from the end, so the newest point remains.
            points[:] = points[::-2][::-1]

    def _forget_after(self, step: int) -> None:
        for points in self._series.values():
            points[:] = [point for point in points if point[0] <= step]
