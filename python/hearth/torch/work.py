"""Work objects of torch.distributed: submitted operations and their continuations."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from torch import Tensor
from torch.distributed import Work
from torch.futures import Future

from hearth.native import timeline

_NO_TIMEOUT = timedelta(0)  # the default of wait(), which means the group's timeout
# Extra time, so that the operation's timeout, whose error says more, expires first.
_GRACE_S = 5.0


class CompletedWork(Work):
    """An operation that finished before the call returned."""

    def __init__(self, results: list[Tensor]):
        super().__init__()
        self._results = results

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        return True

    def get_future(self) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(self._results)
        return future


class PendingWork(Work):
    """The Work of one call, with one or more operations. Any thread may wait for them.

    `waits`: functions with a timeout in seconds that return once their operation has finished, or
    raise; they are called in this order. `finish` is called once, after them. `timeout_s`: limit
    for each operation.
    """

    def __init__(
        self,
        waits: Sequence[Callable[[float], None]],
        finish: Callable[[], None],
        results: list[Tensor],
        timeout_s: float,
        notifier: Notifier,
    ):
        super().__init__()
        self._waits = waits
        self._finish: Callable[[], None] | None = finish
        self._results = results
        self._timeout_s = timeout_s
        self._notifier = notifier
        self._lock = threading.Lock()
        self._future: Future[Any] | None = None

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """Returns once the results are available.

        Raises:
            ConnectionError: a rank left. TimeoutError: a rank did not call in time. Both name the
                rank.
            ValueError: a rank made a different call.
        """
        seconds = timeout.total_seconds()
        with timeline.span("wait for other ranks"):
            for wait in self._waits:
                wait(seconds if seconds > 0 else self._timeout_s + _GRACE_S)
        with self._lock:
            finish, self._finish = self._finish, None
            if finish is not None:
                finish()
        return True

    def get_future(self) -> Future[Any]:
        """A future of the results, completed by the notifier's thread."""
        with self._lock:
            if self._future is None:
                future: Future[Any] = Future()
                # Passes on the error by raising it in a callback. The C++ code in which
                # DistributedDataParallel waits recognizes a callback's error, but takes an error of
                # set_exception() for a result.
                self._future = future.then(lambda _: self._outcome())
                self._notifier.complete_after(future, self.wait_quietly)
            return self._future

    def wait_quietly(self) -> None:
        """Waits for the end of the operation; its error is raised by a later wait()."""
        with suppress(Exception):  # a later wait() raises the error again
            self.wait()

    def _outcome(self) -> list[Tensor]:
        self.wait()
        return self._results


_thread_local = threading.local()  # `notifies`: whether this is a notifier's thread


class Notifier:
    """A dedicated thread that completes futures in submission order.

    A future's callbacks run in that thread. Callbacks may call an operation and wait for it, as
    PyTorch's PowerSGD hook does; another thread then completes that operation.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._nested: list[threading.Thread] = []  # threads for operations that callbacks call
        self._lock = threading.Lock()

    def complete_after(self, future: Future[Any], wait: Callable[[], object]) -> None:
        """Completes `future` once wait() has returned."""
        if getattr(_thread_local, "notifies", False):
            nested = threading.Thread(target=_complete, args=(future, wait), daemon=True)
            nested.start()
            with self._lock:
                self._nested = [*filter(threading.Thread.is_alive, self._nested), nested]
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
        self._queue.put((future, wait))

    def close(self) -> None:
        """Ends the thread after it has completed all submitted futures, whose operations must have
        ended.

        Waits for the thread, because PyTorch's objects release Python's lock when they are
        destroyed, and a thread that does so while the interpreter ends aborts the process.
        """
        self._queue.put(None)
        if not getattr(_thread_local, "notifies", False):
            if self._thread is not None:
                self._thread.join(_GRACE_S)
            with self._lock:  # the list is complete, because callbacks start no more threads
                nested = self._nested
            for thread in nested:
                thread.join(_GRACE_S)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            _complete(*item)


def _complete(future: Future[Any], wait: Callable[[], object]) -> None:
    _thread_local.notifies = True
    wait()
    future.set_result(None)
