"""A training's curves in memory, as a page draws them."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from typing import Any

# Seconds since 1970, iteration, name, and a number or a text: hearth.native._core.RunRecord.
Point = tuple[float, int, str, float | str]

# Of a curve; a chart is not wider. When there are more, every second one goes.
_MOST_POINTS = 500
_MOST_MESSAGES = 100


class History:
    """Any thread may call it."""

    def __init__(self, title: str):
        self._lock = threading.Lock()
        self._series: dict[str, list[list[float | None]]] = {}
        self._messages: list[tuple[float, int, str]] = []
        self._facts: dict[str, Any] = {"title": title}

    def tell(self, **facts: Any) -> None:
        """Sets what the page says beside the curves: state, iteration, max_iter, eta_s."""
        with self._lock:
            self._facts.update(facts)

    def add(self, back_to: int | None, points: Iterable[Point]) -> None:
        """Takes what RunRecord.take() returns."""
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
        """All of it, for JSON; what is no number is None."""
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
            # From the end: the newest point stays.
            points[:] = points[::-2][::-1]

    def _forget_after(self, step: int) -> None:
        for points in self._series.values():
            points[:] = [point for point in points if point[0] <= step]
