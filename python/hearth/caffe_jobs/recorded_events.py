"""Events of a training with Spark Connect, recorded in rank 0's task until it ends."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Hashable
from typing import Any

from hearth.caffe_jobs.live_events import EventSender

Event = dict[str, Any]

_WAIT_S = 5.0
# How long rank 0's coordinator waits for the other ranks to finish. If it closed earlier, they
# would report rank 0 as lost.
_DONE_WAIT_S = 60.0
# Limits: number of events per kind and rank, and bytes of JSON of all histograms. Recurring events
# above them are thinned out.
_MOST = 2000
_MOST_HISTOGRAM_BYTES = 8 << 20
_RECURRING = ("progress", "rank")
_SINGLE = ("validation", "ready", "net")


class RecordedEvents:
    """Records a coordinator's events in a thread until finish()."""

    def __init__(self, coordinator: Any, sender: EventSender | None = None):
        """`sender`: also gets each event when it arrives."""
        self._coordinator = coordinator
        self._sender = sender
        self._count = 0
        self._single: dict[str, list[Event]] = {}
        self._recurring: dict[tuple[str, Any], _Thinned] = {}
        self._histograms = _Thinned(_MOST_HISTOGRAM_BYTES)
        self._start = time.monotonic()
        self._ending = threading.Event()
        self._over = threading.Event()  # all ranks are done, or one has failed
        self._thread = threading.Thread(target=self._take_all, name="hearth-events", daemon=True)
        self._thread.start()

    def finish_done(self) -> list[Event]:
        """Waits up to a minute until all ranks are done or one has failed; then returns
        finish()."""
        self._over.wait(_DONE_WAIT_S)
        return self.finish()

    def finish(self) -> list[Event]:
        """Closes the coordinator and returns the events, each with its `number`, as passed to
        `sender`, and its time of arrival in `seconds`."""
        self._ending.set()
        self._coordinator.close()
        self._thread.join()
        if self._sender is not None:
            self._sender.close()
        kept = self._histograms.events()
        for of_kind in self._single.values():
            kept += of_kind
        for series in self._recurring.values():
            kept += series.events()
        return sorted(kept, key=lambda event: event["number"])

    def _take_all(self) -> None:
        while True:
            ending = self._ending.is_set()
            received = self._coordinator.next_event(_WAIT_S)
            if received is not None:
                self._take(received[0], received[1])
            if self._coordinator.finished() or self._coordinator.failure() is not None:
                self._over.set()
            if received is None and ending:
                return

    def _take(self, rank: int, text: str) -> None:
        event = json.loads(text)
        if not isinstance(event, dict):
            return
        self._count += 1
        kind = event.get("event")
        if self._sender is not None and (rank == 0 or kind != "done"):
            self._sender.put(self._count, event)
        seconds = time.monotonic() - self._start
        event = {**event, "number": self._count, "seconds": seconds}
        if kind == "histogram":
            self._histograms.add(event, event["iteration"], len(text))
        elif kind in _RECURRING:
            series = self._recurring.setdefault((kind, event.get("rank")), _Thinned(_MOST))
            series.add(event, self._count)
        elif kind in _SINGLE or (kind == "log" and event.get("level") == "W"):
            of_kind = self._single.setdefault(kind, [])
            if len(of_kind) < _MOST:
                of_kind.append(event)


class _Thinned:
    """Groups of events. Above the limit only every second (fourth, eighth, ...) group and the
    newest one are retained."""

    def __init__(self, most: int):
        """`most`: limit of the total size, which the first and the newest group may exceed."""
        self._most = most
        self._kept: list[tuple[int, int, Event]] = []  # (number of the group, size, event)
        self._size = 0
        self._stride = 1
        self._number = -1
        self._group: Hashable = None

    def add(self, event: Event, group: Hashable, size: int = 1) -> None:
        """Adds an event; the events of a group must be consecutive."""
        if group != self._group:
            while self._kept and self._kept[-1][0] % self._stride:  # no longer the newest
                self._size -= self._kept.pop()[1]
            self._number, self._group = self._number + 1, group
        self._kept.append((self._number, size, event))
        self._size += size
        while self._size > self._most and self._stride <= self._number:
            self._stride *= 2
            newest = self._number
            self._kept = [k for k in self._kept if k[0] == newest or not k[0] % self._stride]
            self._size = sum(size for _, size, _ in self._kept)

    def events(self) -> list[Event]:
        return [event for _, _, event in self._kept]
