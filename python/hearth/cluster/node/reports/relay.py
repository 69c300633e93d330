"""The supervisor's side of reports: forwards a program's reports and output to the driver,
rate-limited.

Output is copied unchanged to the supervisor's standard output and error, which are the executor's
log files; its lines are also sent to the driver if the cluster's `logs` includes this node.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from hearth.cluster.node.reports.bounded_queue import Bounded
from hearth.cluster.node.reports.output_lines import Limit, Lines

# Interval of messages to the driver.
PERIOD_S = 0.2
# Interval for ranks other than 0, whose reports are only for the history.
_OTHERS_PERIOD_S = 1.0
_MOST_WAITING = 2000
# Limits of one message, which is at most a megabyte.
_REPORTS, _REPORT_BYTES, _LINES = 200, 256 << 10, 100
_FLUSH_S = 5.0
_READ_BYTES = 1 << 16


class Relay:
    """The relay of a program's reports and output. Owns a thread, the report socket, and the read
    ends of the output pipes."""

    def __init__(self, job: Mapping[str, Any], send: Callable[[dict[str, Any]], None]):
        """`send`: sends an event to the driver; called in the relay's thread."""
        self._send = send
        self._captures = job.get("captures", "")
        self._label = f"[{job.get('called', job['name'])} {socket.gethostname()}]"
        self._period_s = PERIOD_S if job.get("counts", True) else _OTHERS_PERIOD_S
        self._reports, self.program_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._reports.setblocking(False)
        self._waiting = Bounded(_MOST_WAITING)
        self._lost = 0  # reports that the program dropped
        self._lines: list[str] = []
        self._left_out = 0  # lines above the rate limit
        self._limit = Limit()
        # By the read end of a pipe: (its lines, the descriptor of this process's stdout or stderr).
        self._pipes: dict[int, tuple[Lines, int]] = {}
        self._ends: list[int] = []  # the pipes' write ends, for the program
        if self._captures:
            for own in (1, 2):
                read, write = os.pipe()
                os.set_blocking(read, False)
                self._pipes[read] = Lines(), own
                self._ends.append(write)
        self._wake, self._wakes = os.pipe()
        self._lock = threading.Lock()
        self._flushes: list[threading.Event] = []
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="hearth-relay", daemon=True)

    def popen_options(self) -> dict[str, Any]:
        """Popen() options that redirect the program's standard output and error."""
        return dict(zip(("stdout", "stderr"), self._ends, strict=False))

    def start(self) -> None:
        """Called after the program's start: closes the program's ends of the pipes and the socket
        in this process, and starts the thread."""
        self.program_end.close()
        for fd in self._ends:
            os.close(fd)
        self._thread.start()

    def flush(self) -> None:
        """Forwards all reports and output so far. Never raises."""
        done = threading.Event()
        with self._lock:
            self._flushes.append(done)
        os.write(self._wakes, b"-")
        if self._thread.is_alive():
            done.wait(_FLUSH_S)

    def close(self) -> None:
        """Called after the program's end: forwards remaining data, and ends the thread. Never
        raises."""
        self._closing = True
        self.flush()
        if self._thread.is_alive():
            self._thread.join(_FLUSH_S)

    def _run(self) -> None:
        selector = selectors.DefaultSelector()
        for fd in (self._wake, self._reports.fileno(), *self._pipes):
            selector.register(fd, selectors.EVENT_READ)
        sent = time.monotonic() - self._period_s
        while True:
            pending = self._pending()
            left = max(0.0, sent + self._period_s - time.monotonic()) if pending else None
            for key, _ in selector.select(left):
                if not self._read(key.fd):
                    selector.unregister(key.fd)
            with self._lock:
                flushes, self._flushes = self._flushes, []
            if flushes:
                for fd in (self._reports.fileno(), *self._pipes):
                    while self._read(fd, flushing=True):
                        pass
                for lines, _ in self._pipes.values():
                    self._take_lines(lines.end())
            if self._pending() and (flushes or time.monotonic() >= sent + self._period_s):
                self._pass_on(everything=bool(flushes))
                sent = time.monotonic()
            for done in flushes:
                done.set()
            if self._closing and flushes:
                return

    def _pending(self) -> bool:
        return bool(len(self._waiting) or self._lines or self._left_out or self._lost)

    def _read(self, fd: int, flushing: bool = False) -> bool:
        """Reads available data. False at the end of data, or if there is none while flushing."""
        try:
            if fd == self._reports.fileno():
                data = self._reports.recv(_READ_BYTES * 4)
            else:
                data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return not flushing
        except OSError:
            return False
        if not data:
            return False
        if fd == self._reports.fileno():
            self._take_report(data)
        elif fd in self._pipes:
            lines, own = self._pipes[fd]
            if self._captures == "here":
                self._print_here(own, lines.add(data))
            else:
                _write_all(own, data)
                self._take_lines(lines.add(data))
        return True

    def _take_report(self, data: bytes) -> None:
        with suppress(ValueError):  # e.g. a program that writes to this socket itself
            message = json.loads(data)
            if "left_out" in message:
                self._lost += message["left_out"]
            else:
                self._waiting.add({**message, "size": len(data)})

    def _take_lines(self, lines: list[str]) -> None:
        if self._captures == "here":
            self._print_here(2, lines)
            return
        taken = self._limit.within(lines) if not self._left_out else []
        self._lines += taken
        self._left_out += len(lines) - len(taken)

    def _print_here(self, own: int, lines: list[str]) -> None:
        """Prints all lines with their rank, because this process writes to the driver's
        terminal."""
        _write_all(own, "".join(f"{self._label} {line}\n" for line in lines).encode())

    def _pass_on(self, everything: bool) -> None:
        now = time.monotonic()
        while len(self._waiting) or self._lost:
            lost, self._lost = self._lost + self._waiting.left_out, 0
            self._waiting.left_out = 0
            reports: list[dict[str, Any]] = []
            size = 0
            while len(self._waiting) and len(reports) < _REPORTS and size < _REPORT_BYTES:
                report = self._waiting.take()
                size += report.pop("size")
                report["ago"] = round(max(0.0, now - report.pop("at", now)), 3)
                reports.append(report)
            self._report({"event": "report", "reports": reports, "left_out": lost})
            if not everything:
                break
        while self._lines or self._left_out:
            lines, self._lines = self._lines[:_LINES], self._lines[_LINES:]
            left_out = 0 if self._lines else self._left_out
            if not self._lines:
                self._left_out = 0
            said = {"label": self._label, "lines": lines, "left_out": left_out}
            self._report({"event": "output", **said})

    def _report(self, event: dict[str, Any]) -> None:
        with suppress(Exception):  # the driver has ended; output must still be copied
            self._send(event)


def _write_all(fd: int, data: bytes) -> None:
    """Writes to the executor's file; ignores errors, as the program must go on."""
    with suppress(OSError):
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]


def flush_own_output() -> None:
    """Flushes this process's output buffers to the pipes; called in the program."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # a closed stream has nothing to flush
            stream.flush()
