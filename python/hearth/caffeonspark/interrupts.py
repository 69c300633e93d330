"""Ctrl-C at a command line: the first one stops the work, nothing breaks off the cleaning up."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERRUPTED = 130  # what a shell expects of a program that SIGINT ended

# Ranks, executors and folders are gone well before. What takes longer is stuck.
_CLEANING_UP_S = 20.0
# An action that was cancelled ends at once; its executors end with the session.
_CANCEL_WAIT_S = 5.0


def run_in_thread(spark: SparkSession, action: Callable[[], Any]) -> Any:
    """What `action`, which waits for Spark, returns or raises; Ctrl-C cancels Spark's jobs.

    In the main thread an interrupt would break into the talk with Spark's JVM, and whatever is
    asked of Spark next would wait for the answer of before.
    """
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = action()
        except BaseException as error:  # handed to the thread that waits
            outcome["error"] = error

    thread = threading.Thread(target=run, name="hearth-action", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        spark.sparkContext.cancelAllJobs()
        thread.join(_CANCEL_WAIT_S)
        raise
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


class Interrupts:
    """A context manager for the main thread, of which there is one; in others it does nothing.

    The first SIGINT raises KeyboardInterrupt. Later ones are passed over, to the end of the
    process, as the first is being obeyed; where that takes too long they end it.
    """

    def __init__(self) -> None:
        self._first: float | None = None
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        self._before = signal.getsignal(signal.SIGINT)
        self.take_over()
        return self

    def take_over(self) -> None:
        """Also after Spark, which sets a handler of its own when it starts."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._handle)

    def begin(self) -> None:
        """Obeys the first one, which another handler was given: Spark's, while Spark starts."""
        self._first = self._first or time.monotonic()
        self.take_over()

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = now
            raise KeyboardInterrupt
        if now - self._first > _CLEANING_UP_S:
            os._exit(INTERRUPTED)  # the JVM ends with us, and its executors and folders with it

    def __exit__(self, *_: object) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        if self._first is None and in_main and self._before is not None:
            signal.signal(signal.SIGINT, self._before)
