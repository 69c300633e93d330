"""A key-value store of a cluster's nodes, replicated through the driver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hearth.cluster.channel import Message
from hearth.errors import DeadlineExceededError, HearthError

# Time limit for a key to be published; the publishing node may load data first.
_WAIT_S = 600.0


class KeyValueStore:
    """A node's side of the cluster's key-value store. Thread-safe. `report` sends an event to the
    driver."""

    def __init__(self, report: Callable[[Message], None]):
        self._report = report
        self._texts: dict[str, str] = {}
        self._failed: str | None = None
        self._changed = threading.Condition()

    def publish(self, name: str, text: str) -> None:
        """Stores a text of less than a megabyte; each key may be set once per start of the
        cluster."""
        self._report({"event": "publish", "name": name, "text": text})

    def read(self, name: str) -> str:
        """Waits for the value of a key.

        Raises:
            HearthError: the cluster has failed. TimeoutError: the key was not published.
        """
        limit = time.monotonic() + _WAIT_S
        with self._changed:
            while name not in self._texts:
                if self._failed is not None:
                    raise HearthError(self._failed)
                if not self._changed.wait(limit - time.monotonic()):
                    raise DeadlineExceededError(f"no node published {name!r} within {_WAIT_S:g} s")
            return self._texts[name]

    def note(self, message: Message) -> None:
        """Handles a message of the driver."""
        with self._changed:
            self._texts[message["name"]] = message["text"]
            self._changed.notify_all()

    def fail(self, reason: str) -> None:
        """Ends all waits with an error, because the cluster has failed."""
        with self._changed:
            self._failed = reason
            self._changed.notify_all()
