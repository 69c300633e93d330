"""The thread of this process that loads and calls models, and a cache of models.

One thread does both, because libraries have per-thread settings, such as PyTorch's gradient mode.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class _ModelThread:
    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def submit(self, call: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._thread is None:
                # A daemon thread, so that a hung device does not prevent the process from exiting.
                run = threading.Thread(target=self._run, name="hearth-model", daemon=True)
                self._thread = run
                run.start()
        self._calls.put((future, call))
        return future

    def _run(self) -> None:
        while True:
            future, call = self._calls.get()
            try:
                if future.set_running_or_notify_cancel():
                    future.set_result(call())
            except BaseException as error:
                future.set_exception(error)
            del future, call  # free both now: get() may block for long


_thread = _ModelThread()


def start_in_model_thread(call: Callable[[], T]) -> Future[T]:
    """Queues a call for the model thread."""
    return _thread.submit(call)


def in_model_thread(call: Callable[[], T]) -> T:
    """Runs `call` in the model thread; returns its result or raises its exception."""
    return _thread.submit(call).result()


_kept: dict[tuple[str, str], Any] = {}  # cached values by kind and key


def kept(kind: str, key: str, make: Callable[[], T]) -> T:
    """Returns the result of `make`, which is cached in this process for later tasks and jobs.

    Args:
        kind: only the last value of each kind is cached.
        key: identifies values of a kind by their content.
        make: creates the value if it is not cached.
    """
    if (kind, key) not in _kept:
        for other in [known for known in list(_kept) if known[0] == kind]:
            del _kept[other]
        _kept[kind, key] = make()
    found: T = _kept[kind, key]
    return found
