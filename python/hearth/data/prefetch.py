"""Batches that are made ahead, by threads, in their order."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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
    stopped = threading.Event()
    pool = ThreadPoolExecutor(workers, "hearth-map") if workers else None
    arguments = (items, finish, pool, ready, stopped)
    threading.Thread(target=_produce, args=arguments, name="hearth-loader", daemon=True).start()
    try:
        while (future := ready.get()) is not None:
            yield future.result()
    finally:
        stopped.set()
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


def _produce(
    items: Iterator[Any],
    finish: Callable[[Any], Any],
    pool: ThreadPoolExecutor | None,
    ready: queue.Queue[Future[Any] | None],
    stopped: threading.Event,
) -> None:
    def put(future: Future[Any] | None) -> None:
        while not stopped.is_set():
            with suppress(queue.Full):
                ready.put(future, timeout=_LOOK_S)
                return

    try:
        for item in items:
            if pool is not None:
                put(pool.submit(finish, item))
            else:
                put(_done(finish(item)))
            if stopped.is_set():
                return
    except BaseException as error:  # raised again in the consumer
        failed: Future[Any] = Future()
        failed.set_exception(error)
        put(failed)
    put(None)


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future
