"""Ctrl-C at a command line: ends the work at any moment of it, Spark's start included.

The work has a thread of its own, and the main thread, in which Python raises KeyboardInterrupt,
only waits. Otherwise an interrupt would break into an import, or into an exchange with Spark's JVM,
whose next request would then get the previous answer.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    Started = Callable[[SparkSession], None]

INTERRUPTED = 130  # what a shell expects of a program that SIGINT ended

# Jobs that are cancelled, executors and folders are gone well before. What takes longer is stuck.
_STOP_WAIT_S = 6.0
_CLEANING_UP_S = 20.0
_CANCEL_AGAIN_S = 0.3
# Exit handlers remove folders and end sessions whose JVM is gone.
_EXIT_HANDLERS_S = 5.0


def run_interruptibly(work: Callable[[Started], int]) -> int:
    """What `work` returns or raises; it calls its argument once it has a Spark session.

    The first SIGINT ends Spark's jobs, or its JVM where that is just starting, and raises
    KeyboardInterrupt; from then on sys.stderr is discarded. Later ones are ignored until the
    process ends, unless that takes too long: then they end it. Outside of the main thread, which
    alone gets signals, it just calls `work`.
    """
    if threading.current_thread() is not threading.main_thread():
        return work(lambda _: None)
    return _Interruptible(work).run()


def exit_with(status: int) -> NoReturn:
    """Ends the program; where it was interrupted, after its exit handlers alone, as far as they
    come in a few seconds: Python's own ending may wait for what broken-off threads hold.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to interrupt
    if status != INTERRUPTED:
        sys.exit(status)
    limit = threading.Timer(_EXIT_HANDLERS_S, os._exit, [INTERRUPTED])
    limit.daemon = True
    limit.start()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.__stderr__):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(INTERRUPTED)


class _Interruptible:
    def __init__(self, work: Callable[[Started], int]):
        self._work = work
        self._lock = threading.Lock()
        self._session: SparkSession | None = None
        self._first: float | None = None
        self._result: Any = None
        self._error: BaseException | None = None
        # Not the thread's own: one whose join() was interrupted counts as ended (Python < 3.13).
        self._ended = threading.Event()

    def run(self) -> int:
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            threading.Thread(target=self._run, name="hearth-work", daemon=True).start()
            self._ended.wait()
        except KeyboardInterrupt:
            _fall_silent()
            self._end()
            raise
        signal.signal(signal.SIGINT, before)
        if self._error is not None:
            raise self._error
        return self._result

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first is None and not self._ended.is_set():
            self._first = now
            raise KeyboardInterrupt
        if self._first is not None and now - self._first > _CLEANING_UP_S:
            os._exit(INTERRUPTED)  # the JVM ends with us, and its executors and folders with it

    def _run(self) -> None:
        try:
            self._result = self._work(self._started)
        except BaseException as error:  # handed to the thread that waits
            self._error = error
        self._ended.set()

    def _started(self, session: SparkSession) -> None:
        with self._lock:
            self._session = session
        if self._first is not None:
            raise KeyboardInterrupt

    def _end(self) -> None:
        with self._lock:
            session = self._session
        if session is not None:
            stop = threading.Thread(target=self._stop, args=(session,), daemon=True)
            stop.start()
            stop.join(_STOP_WAIT_S)
            if self._ended.is_set() and not stop.is_alive():
                return
        from hearth.spark import java_start

        java_start.kill(self._ended.is_set)

    def _stop(self, session: SparkSession) -> None:
        """Ends the session's jobs, until the work has ended, and then the session."""
        context = session.sparkContext
        context.setLogLevel("OFF")
        while not self._ended.is_set():
            context.cancelAllJobs()
            self._ended.wait(_CANCEL_AGAIN_S)
        session.stop()


def _fall_silent() -> None:
    """Discards messages about what is broken off from now on: only sys.__stderr__ still writes."""
    import logging

    logging.disable(logging.CRITICAL)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
