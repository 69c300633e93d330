"""Runs a Spark action in a thread, so that the caller can do other work meanwhile."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hearth.spark.access import ClassicSpark, ConnectSpark


class SparkJob:
    """A Spark action, which the constructor starts in a thread. Thread-safe.

    Attributes:
        tag: the tag of all Spark jobs of the action.
        ended: whether the action has ended; then either `result` or `error` is set.
    """

    def __init__(
        self,
        spark: ClassicSpark | ConnectSpark,
        action: Callable[[], Any],
        on_end: Callable[[SparkJob], None] = lambda _: None,
    ):
        """`on_end` is called in the action's thread after the action; it must not raise."""
        self.tag = f"hearth-{uuid.uuid4()}"
        self.result: Any = None
        self.error: BaseException | None = None
        self._spark = spark
        self._action = action
        self._on_end = on_end
        # Thread.join() is unsuitable: before Python 3.13, interrupting it marks the thread as
        # ended.
        self._over = threading.Event()
        thread = spark.thread(self._run)
        thread.name, thread.daemon = "hearth-job", True
        thread.start()

    @property
    def ended(self) -> bool:
        """Whether the job has finished or failed."""
        return self._over.is_set()

    def _run(self) -> None:
        try:
            self._spark.tag(self.tag)
            self.result = self._action()
        except BaseException as error:  # stored for the waiting threads
            self.error = error
        self._over.set()
        self._on_end(self)
        # Breaks a reference cycle with the job's owner, which would keep sockets open until
        # collected.
        del self._action, self._on_end

    def cancel(self) -> None:
        """Cancels the action without waiting for its end."""
        if not self.ended:
            self._spark.cancel(self.tag)

    def end(self, patience_s: float) -> None:
        """Waits for the action's end, and cancels the action every `patience_s`.

        One cancellation is not enough, because Spark has no jobs before it has planned the action.
        """
        while not self.join(patience_s):
            self.cancel()

    def join(self, timeout_s: float | None = None) -> bool:
        """Waits for the action's end; returns whether it has ended."""
        return self._over.wait(timeout_s)
