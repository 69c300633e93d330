"""Handles Ctrl-C on a command line at any time, including Spark's start.

The work runs in a separate thread, while the main thread, in which Python raises KeyboardInterrupt,
only waits. Otherwise an interrupt would hit an import, or an exchange with Spark's JVM, whose next
request would then get the previous response.
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

INTERRUPTED = 130  # a shell's status for a program terminated by SIGINT

# Enough to cancel jobs and to end executors and folders; longer means that something is stuck.
_STOP_WAIT_S = 6.0
_CLEANING_UP_S = 20.0
_CANCEL_AGAIN_S = 0.3
# Exit handlers remove folders and end sessions whose JVM is gone.
_EXIT_HANDLERS_S = 5.0


def run_interruptibly(work: Callable[[Started], int]) -> int:
    """The result of `work`, which calls its argument once it has a Spark session.

    The first SIGINT cancels Spark's jobs, or ends its JVM if that is starting, and raises
    KeyboardInterrupt; from then on sys.stderr is discarded. Later ones are ignored until the
    process ends, unless that takes too long: then they kill it. Outside of the main thread, the
    only one that gets signals, it just calls `work`.
    """
    if threading.current_thread() is not threading.main_thread():
        return work(lambda _: None)
    return _Interruptible(work).run()


def exit_with(status: int) -> NoReturn:
    """Ends the program. If it was interrupted, runs only its exit handlers, for at most a few
    seconds: Python's regular shutdown may wait for locks of abandoned threads.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing to interrupt any more
    if status != INTERRUPTED:
        sys.exit(status)
    limit = threading.Timer(_EXIT_HANDLERS_S, os._exit, [INTERRUPTED])
    limit.daemon = True
    limit.start()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.__stderr__):
        with suppress(OSError, ValueError):
            if stream is not None:
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
        # Not the thread's own event: a thread counts as ended after an interrupted join() (< 3.13).
        self._ended = threading.Event()

    def run(self) -> int:
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            threading.Thread(target=self._run, name="hearth-work", daemon=True).start()
            self._ended.wait()
        except KeyboardInterrupt:
            _discard_stderr()
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
            os._exit(INTERRUPTED)  # the JVM ends with this process, and with it its executors

    def _run(self) -> None:
        try:
            self._result = self._work(self._started)
        except BaseException as error:  # passed to the waiting thread
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
        """Cancels the session's jobs until the work has ended, and then stops the session."""
        context = session.sparkContext
        context.setLogLevel("OFF")
        while not self._ended.is_set():
            context.cancelAllJobs()
            self._ended.wait(_CANCEL_AGAIN_S)
        session.stop()


def _discard_stderr() -> None:
    """Discards messages of cancelled work from now on: only sys.__stderr__ still writes."""
    import logging

    logging.disable(logging.CRITICAL)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
