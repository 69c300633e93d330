"""Handles Ctrl-C on a command line at any time, including Spark's start.

The work runs in a separate thread, and the main thread, in which Python raises KeyboardInterrupt,
only waits. Otherwise KeyboardInterrupt could break an import, or a request to Spark's JVM; the next
request would then read the response to the interrupted one.
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

# Time to cancel jobs, stop executors and remove folders; if it is exceeded, something hangs.
_STOP_WAIT_S = 6.0
_CLEANING_UP_S = 20.0
_CANCEL_AGAIN_S = 0.3
# Time for exit handlers, which remove folders and close sessions whose JVM has exited.
_EXIT_HANDLERS_S = 5.0


def run_interruptibly(work: Callable[[Started], int]) -> int:
    """Returns the result of `work`, which must pass its Spark session, once created, to its
    argument.

    The first SIGINT cancels Spark's jobs, or kills its JVM if the JVM is still starting, and raises
    KeyboardInterrupt; from then on sys.stderr is discarded. Later SIGINTs are ignored, but after a
    time limit they kill the process. Outside of the main thread, which alone receives signals, this
    only calls `work`.
    """
    if threading.current_thread() is not threading.main_thread():
        return work(lambda _: None)
    return _Interruptible(work).run()


def exit_with(status: int) -> NoReturn:
    """Ends the program. If it was interrupted, runs only its exit handlers, for at most a few
    seconds, because Python's regular shutdown could block on locks that abandoned threads hold.
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
        self._ended = threading.Event()
        # Wakes run() at the end of the work or at SIGINT. The signal handler does not raise an
        # exception, which could leave a lock or an Event in a wrong state.
        self._wakes, self._wake = os.pipe()

    def run(self) -> int:
        before = signal.signal(signal.SIGINT, self._handle)
        threading.Thread(target=self._run, name="hearth-work", daemon=True).start()
        os.read(self._wakes, 1)
        if self._first is not None:
            _discard_stderr()
            self._end()
            raise KeyboardInterrupt
        signal.signal(signal.SIGINT, before)
        os.close(self._wakes)
        os.close(self._wake)
        if self._error is not None:
            raise self._error
        return self._result

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first is None and not self._ended.is_set():
            self._first = now
            os.write(self._wake, b"-")
        elif self._first is not None and now - self._first > _CLEANING_UP_S:
            os._exit(INTERRUPTED)  # the JVM and the executors end with this process

    def _run(self) -> None:
        try:
            self._result = self._work(self._started)
        except BaseException as error:  # run() raises the error
            self._error = error
        self._ended.set()
        os.write(self._wake, b"-")

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
    """Discards messages of cancelled work; only sys.__stderr__ still writes."""
    import logging

    logging.disable(logging.CRITICAL)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
