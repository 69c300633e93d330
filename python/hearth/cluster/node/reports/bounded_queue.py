"""A bounded queue of reports, evenly thinned out when full."""

from __future__ import annotations

from collections import deque
from typing import Any

Message = dict[str, Any]


class Bounded:
    """A queue of reports, in order. If there are too many reports, every second one is dropped, but
    never a metric's last one. Not thread-safe.

    Attributes:
        left_out: total number of dropped reports.
    """

    def __init__(self, most: int):
        self._most = self._room = most
        self._kept: deque[tuple[int, Message]] = deque()
        self._last: dict[str, int] = {}  # number of the newest report of each metric
        self._count = 0
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, message: Message) -> None:
        """Adds a report, or a message without values, which is never dropped."""
        self._count += 1
        self._kept.append((self._count, message))
        for name in message.get("values", ()):
            self._last[name] = self._count
        if len(self._kept) > self._room:
            self._thin_out()

    def peek(self) -> Message:
        """The oldest message."""
        return self._kept[0][1]

    def take(self) -> Message:
        """Removes and returns the oldest message."""
        _, message = self._kept.popleft()
        if not self._kept:
            self._last.clear()
            self._room = self._most
        return message

    def _thin_out(self) -> None:
        kept = deque(
            (number, message)
            for place, (number, message) in enumerate(self._kept)
            if place % 2 or self._stays(number, message)
        )
        self.left_out += len(self._kept) - len(kept)
        self._kept = kept
        # If most of the remaining reports must stay, thin out again only after the queue has
        # doubled.
        self._room = self._most if 4 * len(kept) <= 3 * self._most else 2 * len(kept)

    def _stays(self, number: int, message: Message) -> bool:
        values = message.get("values", ())
        return not values or any(self._last[name] == number for name in values)
