"""The events of a training whose driver cannot hear them: kept beside rank 0 until it ends."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

Event = dict[str, Any]

_WAIT_S = 5.0
# Of each kind; where there are more of those that come again and again, every second one goes.
_MOST = 2000
_AGAIN = ("progress", "rank")
_ONCE = ("validation", "ready", "net", "histogram")


class KeptEvents:
    """Takes a coordinator's events in a thread of its own, until finish()."""

    def __init__(self, coordinator: Any):
        self._coordinator = coordinator
        self._kept: dict[str, list[Event]] = {}
        self._start = time.monotonic()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._take_all, name="hearth-events", daemon=True)
        self._thread.start()

    def finish(self) -> list[Event]:
        """Closes the coordinator. The events, each with the `seconds` after which it came."""
        self._ending.set()
        self._coordinator.close()
        self._thread.join()
        return sorted((e for kind in self._kept.values() for e in kind), key=lambda e: e["seconds"])

    def _take_all(self) -> None:
        while True:
            ending = self._ending.is_set()
            event = self._coordinator.next_event(_WAIT_S)
            if event is not None:
                self._take(json.loads(event[1]))
            elif ending:
                return

    def _take(self, event: Any) -> None:
        kind = event.get("event") if isinstance(event, dict) else None
        warning = kind == "log" and event.get("level") == "W"
        if kind not in (*_AGAIN, *_ONCE) and not warning:
            return
        kept = self._kept.setdefault(kind, [])
        if len(kept) >= _MOST:
            if kind not in _AGAIN:
                return
            kept[:] = kept[::-2][::-1]
        kept.append({**event, "seconds": time.monotonic() - self._start})
