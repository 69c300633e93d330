"""Prepares batches ahead in threads, and yields them in order."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hearth.data.batch_maker import PreparedBatch

# Interval at which a blocked producer checks whether its consumer has stopped.
_CHECK_S = 0.2


class Iteration:
    """One iteration over a loader.

    If a batch cannot be created, next() raises the error, and the following call returns the next
    batch, as with a DataLoader. If no further batches are possible, each call raises the error. Any
    thread may call next().
    """

    def __init__(self, batches: Iterator[Future[PreparedBatch]], check: Callable[[], None]):
        """`check`: called by next(). Raises unless this is the loader's process, whose threads
        create the batches."""
        self._batches, self._check = batches, check
        self._lock = threading.Lock()
        self._failure: BaseException | None = None  # the error after which no batches follow

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._check()
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                future = next(self._batches)
            except StopIteration:
                raise
            except BaseException as error:  # also KeyboardInterrupt, which programs may catch
                self._failure = error
                raise
        return future.result().batch


def prefetched(
    items: Iterator[Any], finish: Callable[[Any], Any], workers: int, depth: int
) -> Iterator[Future[Any]]:
    """Yields a future of finish(item) for each item, in order; at most `depth` are unconsumed.

    Raises the exceptions of `items`. The futures contain the exceptions of finish().

    Args:
        items: consumed by a thread, which ends by itself if the consumer stops early.
        finish: called by `workers` threads; if 0, by the thread that consumes the items.
        depth: limit of prepared items.
    """
    ready: queue.Queue[Future[Any] | BaseException | None] = queue.Queue(max(1, depth))
    makers = _Makers(finish, workers)
    _start(_produce, items, makers, ready)
    try:
        while (result := ready.get()) is not None:
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        makers.stop()


class _Makers:
    """Threads that call finish(). A ThreadPoolExecutor would delay the program's exit."""

    def __init__(self, finish: Callable[[Any], Any], workers: int):
        self._finish, self._workers = finish, workers
        self._work: queue.SimpleQueue[tuple[Any, Future[Any]] | None] = queue.SimpleQueue()
        self.stopped = threading.Event()
        for _ in range(workers):
            _start(self._run)

    def make(self, item: Any) -> Future[Any]:
        """Calls finish(item) in one of the threads, or in this thread if there are none."""
        future: Future[Any] = Future()
        if self._workers:
            self._work.put((item, future))
        else:
            self._call(item, future)
        return future

    def stop(self) -> None:
        """Ends the threads and drops the calls that have not started."""
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


def _produce(items: Iterator[Any], makers: _Makers, ready: queue.Queue[Any]) -> None:
    def put(result: Future[Any] | BaseException | None) -> None:
        while not makers.stopped.is_set():
            with suppress(queue.Full):
                ready.put(result, timeout=_CHECK_S)
                return

    try:
        for item in items:
            put(makers.make(item))
            if makers.stopped.is_set():
                return
    except BaseException as error:  # raised again in the consumer
        put(error)
    put(None)


def _start(function: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=function, args=arguments, name="hearth-loader", daemon=True).start()
