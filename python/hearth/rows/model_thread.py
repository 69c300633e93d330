"""The thread of this process that loads models and calls them, and the models that it keeps.

One thread does both, as libraries have settings of the thread: PyTorch's gradient mode, for one.
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
                # As a daemon it does not keep a process whose device hangs from its end.
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
            del future, call  # the next wait may be long


_thread = _ModelThread()


def start_in_model_thread(call: Callable[[], T]) -> Future[T]:
    """Calls it once the calls before it are done."""
    return _thread.submit(call)


def in_model_thread(call: Callable[[], T]) -> T:
    """What `call` returns or raises in the model thread."""
    return _thread.submit(call).result()


_kept: dict[tuple[str, str], Any] = {}  # by kind and content


def kept(kind: str, key: str, make: Callable[[], T]) -> T:
    """What `make` gives, kept by this process for later tasks and jobs.

    Args:
        kind: of several values of one kind the last one is kept.
        key: tells values of a kind apart, by their content.
        make: called where the process does not have the value.
    """
    if (kind, key) not in _kept:
        for other in [known for known in list(_kept) if known[0] == kind]:
            del _kept[other]
        _kept[kind, key] = make()
    found: T = _kept[kind, key]
    return found
