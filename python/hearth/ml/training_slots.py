"""Coordinates the trainings of one driver. Each training waits until all task slots that it needs
are free, and uses its checkpoint folder exclusively."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hearth.errors import invalid
from hearth.spark.dynamic_allocation import is_on
from hearth.spark.profiles import task_cpus, task_profile
from hearth.spark.slots import slots_now


class SlotQueue:
    """A queue that grants slots in the order of the requests. All slots of a request are granted at
    once, so no request holds only some of them. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken = 0
        self._queue: deque[object] = deque()

    @contextmanager
    def hold(self, count: int, slots: Callable[[], int | None]) -> Iterator[None]:
        """Holds `count` slots during the block. If fewer slots exist, the block runs alone, and
        Spark reports the missing slots. `slots` returns the number of slots (None: unknown), and is
        called again each time another block ends."""
        turn = object()
        with self._changed:
            self._queue.append(turn)
            try:
                self._changed.wait_for(lambda: self._queue[0] is turn and self._fits(count, slots))
                self._taken += count
            finally:
                self._queue.remove(turn)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._taken -= count
                self._changed.notify_all()

    def _fits(self, count: int, slots: Callable[[], int | None]) -> bool:
        if self._taken == 0:
            return True
        known = slots()
        return known is not None and self._taken + count <= known


_queue = SlotQueue()


@contextmanager
def training_slots(spark: Any, count: int) -> Iterator[None]:
    """Waits until other trainings of this driver leave `count` slots free, and holds them during
    the block."""
    profile = task_profile(spark.conf.get)
    with _queue.hold(count, lambda: slots_of_trainings(spark, profile)):
        yield


def slots_of_trainings(spark: Any, profile: Any) -> int | None:
    """The number of slots that trainings may hold at the same time; None: unknown.

    If workers have a resource `profile`, whose resources they hold until they end, one slot is
    reserved for the tasks that send them rows.
    """
    setting, slots = spark.conf.get, slots_now(spark, profile)
    # With dynamic allocation, the tasks that send rows get additional executors.
    if profile is None or slots is None or is_on(setting):
        return slots
    ordinary = slots_now(spark, None)
    if ordinary is None:
        return None
    cores = (ordinary - 1) * task_cpus(setting)
    return min(slots, int(cores // task_cpus(setting, profile)))


_stores: set[str] = set()
_stores_lock = threading.Lock()


@contextmanager
def exclusive_store(store: str) -> Iterator[None]:
    """Holds a checkpoint folder during the block; "" holds no folder.

    Raises:
        ValueError: another training of this driver uses the folder.
    """
    name = store.rstrip("/")
    with _stores_lock:
        if name in _stores:
            raise invalid(
                f"another fit of this program is using storeDir {store}, and each would resume "
                "from the other's checkpoints: use one folder per fit, or wait for the first one"
            )
        if name:
            _stores.add(name)
    try:
        yield
    finally:
        with _stores_lock:
            _stores.discard(name)
