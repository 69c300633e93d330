"""Trainings of one driver: each takes all task slots that it needs, or waits; each has a folder of
checkpoints that no other one uses meanwhile."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Turns:
    """Gives slots in the order of the requests, all of a request at once, so none waits for a
    part. Any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken = 0
        self._queue: deque[object] = deque()

    @contextmanager
    def taking(self, count: int, slots: Callable[[], int | None]) -> Iterator[None]:
        """Holds `count` slots for the block. More than there are: it runs alone, and Spark
        reports what it lacks. `slots` is asked again each time others end; None: unknown."""
        place = object()
        with self._changed:
            self._queue.append(place)
            try:
                self._changed.wait_for(lambda: self._queue[0] is place and self._fits(count, slots))
                self._taken += count
            finally:
                self._queue.remove(place)
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


_turns = Turns()


@contextmanager
def training_slots(spark: Any, count: int) -> Iterator[None]:
    """Waits until `count` slots are not held by another training of this driver."""
    from hearth.spark.profiles import task_profile

    profile = task_profile(spark.conf.get)
    with _turns.taking(count, lambda: slots_of_trainings(spark, profile)):
        yield


def slots_of_trainings(spark: Any, profile: Any) -> int | None:
    """Slots that trainings may hold at the same time; None: unknown.

    Where workers hold resources of a `profile` until they end, a slot stays for the tasks that
    bring rows to all of them.
    """
    from hearth.spark.dynamic_allocation import is_on
    from hearth.spark.profiles import task_cpus
    from hearth.spark.slots import slots_now

    setting, slots = spark.conf.get, slots_now(spark, profile)
    if profile is None or slots is None or is_on(setting):  # then these tasks get other executors
        return slots
    ordinary = slots_now(spark, None)
    if ordinary is None:
        return None
    cores = (ordinary - 1) * task_cpus(setting)
    return min(slots, int(cores // task_cpus(setting, profile)))


_stores: set[str] = set()
_stores_lock = threading.Lock()


@contextmanager
def store_of_one_training(store: str) -> Iterator[None]:
    """Holds a folder of checkpoints for the block; "" is none.

    Raises:
        ValueError: another training of this driver uses it.
    """
    name = store.rstrip("/")
    with _stores_lock:
        if name in _stores:
            raise ValueError(
                f"another fit of this program uses storeDir {store} now, and each would go on from "
                "the other's checkpoints: give each fit a folder, or wait for the first one"
            )
        if name:
            _stores.add(name)
    try:
        yield
    finally:
        with _stores_lock:
            _stores.discard(name)
