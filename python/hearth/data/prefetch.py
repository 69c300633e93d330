"""Batches that are made ahead, by threads, in their order."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

# How often a thread that waits for room looks whether its consumer has left.
_LOOK_S = 0.2


def prefetched(
    items: Iterator[Any], finish: Callable[[Any], Any], workers: int, depth: int
) -> Iterator[Any]:
    """finish(item) for each item, in their order; at most `depth` are ready or being made.

    Args:
        items: taken by a thread, which is left to end by itself where the consumer stops early.
        finish: called by `workers` threads; by the one that takes the items where there are none.
        depth: how many.
    """
    ready: queue.Queue[Future[Any] | None] = queue.Queue(max(1, depth))
    makers = _Makers(finish, workers)
    _start(_produce, items, makers, ready)
    try:
        while (future := ready.get()) is not None:
            yield future.result()
    finally:
        makers.stop()


class _Makers:
    """Threads that call finish(). Those of an executor would hold up the end of the program, until
    a call that has begun is over."""

    def __init__(self, finish: Callable[[Any], Any], workers: int):
        self._finish, self._workers = finish, workers
        self._work: queue.SimpleQueue[tuple[Any, Future[Any]] | None] = queue.SimpleQueue()
        self.stopped = threading.Event()
        for _ in range(workers):
            _start(self._run)

    def make(self, item: Any) -> Future[Any]:
        """finish(item), by one of the threads, or at once where there are none."""
        future: Future[Any] = Future()
        if self._workers:
            self._work.put((item, future))
        else:
            self._call(item, future)
        return future

    def stop(self) -> None:
        """The threads end; what has not begun is left out."""
        self.stopped.set()
        for _ in range(self._workers):
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None and not self.stopped.is_set():
            self._call(*work)

    def _call(self, item: Any, future: Future[Any]) -> None:
        try:
            future.set_result(self._finish(item))
        except BaseException as error:  # raised again in the consumer
            future.set_exception(error)


def _produce(items: Iterator[Any], makers: _Makers, ready: queue.Queue[Future[Any] | None]) -> None:
    def put(future: Future[Any] | None) -> None:
        while not makers.stopped.is_set():
            with suppress(queue.Full):
                ready.put(future, timeout=_LOOK_S)
                return

    try:
        for item in items:
            put(makers.make(item))
            if makers.stopped.is_set():
                return
    except BaseException as error:  # raised again in the consumer
        failed: Future[Any] = Future()
        failed.set_exception(error)
        put(failed)
    put(None)


def _start(function: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=function, args=arguments, name="hearth-loader", daemon=True).start()
