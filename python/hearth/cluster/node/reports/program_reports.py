"""The program's side of reports: sends each one to the supervisor without blocking."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from hearth.cluster.node.reports.bounded_queue import Bounded
from hearth.cluster.report_values import metrics_of, packed, step_of
from hearth.errors import invalid

# Limit of queued reports, while the supervisor does not read.
_MOST_WAITING = 1000
# Limit of metric names, as a program that puts counters into names would create a curve for each.
_MOST_NAMES = 10_000
_FLUSH_S = 5.0


class ProgramReports:
    """Reports of one node's program. Thread-safe.

    A sent report is in the supervisor's socket, so it survives this process. If the socket is full,
    reports are queued here, and thinned out.
    """

    def __init__(
        self, sock: socket.socket | None = None, clock: Callable[[], float] = time.monotonic
    ):
        """`sock`: a SOCK_SEQPACKET to the supervisor, owned by this object; None: reports are
        checked and dropped."""
        if sock is not None:
            sock.setblocking(False)
        self._sock = sock
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting = Bounded(_MOST_WAITING)
        self._names: set[str] = set()
        self._next_step = 0
        self.should_stop = False

    def report(self, values: Mapping[Any, Any], step: Any = None) -> None:
        """Sends metrics of `step`, by default the step after the last one.

        Raises:
            TypeError, ValueError: a value is not a single number, or the step is not an integer.
        """
        # Imported here because it loads the native core, which drivers do not need.
        from hearth.data.delivered import delivered_rows

        metrics = metrics_of(values)
        given = None if step is None else step_of(step)
        with self._lock:
            number = self._next_step if given is None else given
            message = {"step": number, "values": metrics, "at": self._clock()}
            data = packed({**message, "rows": delivered_rows()})
            self._note_names(metrics)
            self._next_step = number + 1
            self._send({"values": metrics, "data": data})

    def resume(self, step: int) -> None:
        """Records a resume from a checkpoint after `step` steps; reports of later steps become
        void."""
        with self._lock:
            self._next_step = step
            self._send({"data": json.dumps({"back_to": step, "at": self._clock()}).encode()})

    def flush(self, timeout_s: float = _FLUSH_S) -> None:
        """Sends queued reports, if the supervisor reads in time."""
        with self._lock:
            if self._sock is None or not len(self._waiting):
                return
            self._sock.settimeout(timeout_s)
            with suppress(OSError):
                self._send_waiting()
            self._sock.setblocking(False)

    def _note_names(self, metrics: Mapping[str, float]) -> None:
        if len(self._names) + len(metrics) > _MOST_NAMES:
            count = len(self._names.union(metrics))
            if count > _MOST_NAMES:
                raise invalid(
                    f"report() got more than {_MOST_NAMES} different names of metrics, the last "
                    f"{next(iter(metrics))!r}: pass counters as step="
                )
        self._names.update(metrics)

    def _send(self, message: dict[str, Any]) -> None:
        if self._sock is None:
            return
        self._waiting.add(message)
        with suppress(OSError):  # the socket is full, or the supervisor has ended
            self._send_waiting()

    def _send_waiting(self) -> None:
        while len(self._waiting):
            self._sock.send(self._waiting.peek()["data"])  # type: ignore[union-attr]
            self._waiting.take()
        if self._waiting.left_out:
            self._sock.send(json.dumps({"left_out": self._waiting.left_out}).encode())  # type: ignore[union-attr]
            self._waiting.left_out = 0
