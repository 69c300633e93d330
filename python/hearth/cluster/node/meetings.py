"""Texts that one node of a cluster leaves for all, by way of the driver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hearth.cluster.channel import Message

# For the node that leaves a text to come so far: its program may load data first.
_WAIT_S = 600.0


class Meetings:
    """A node's side. Any thread may use it. `report` sends an event to the driver."""

    def __init__(self, report: Callable[[Message], None]):
        self._report = report
        self._texts: dict[str, str] = {}
        self._failed: str | None = None
        self._changed = threading.Condition()

    def publish(self, name: str, text: str) -> None:
        """Leaves a text of less than a megabyte under a name, once in a start of the cluster."""
        self._report({"event": "meeting", "name": name, "text": text})

    def read(self, name: str) -> str:
        """Waits for the text of that name.

        Raises:
            HearthError: the cluster has failed. TimeoutError: nobody has left one.
        """
        from hearth import HearthError

        limit = time.monotonic() + _WAIT_S
        with self._changed:
            while name not in self._texts:
                if self._failed is not None:
                    raise HearthError(self._failed)
                if not self._changed.wait(limit - time.monotonic()):
                    raise TimeoutError(f"no node came to {name!r} within {_WAIT_S:g} s")
            return self._texts[name]

    def note(self, message: Message) -> None:
        """What the driver passes on."""
        with self._changed:
            self._texts[message["name"]] = message["text"]
            self._changed.notify_all()

    def fail(self, reason: str) -> None:
        """The cluster has failed: nobody will come any more."""
        with self._changed:
            self._failed = reason
            self._changed.notify_all()
