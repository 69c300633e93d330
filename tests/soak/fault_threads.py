"""Threads that repeatedly inject faults into a counted training or feed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import counted_feed
import faults
from conftest import marked_processes
from counted_net import CountedNet

_POLL_S = 0.03


class FaultThread:
    """Injects faults one by one, each after the victim has recovered from the previous one.

    A context manager around the victim's run, whose end also ends the thread.
    """

    def __init__(self, kinds: list[str], seed: int):
        self._kinds = list(kinds)
        self._random = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="faults", daemon=True)
        self.recoveries: dict[str, list[float]] = defaultdict(list)
        self.missed: Counter[str] = Counter()
        self.error: BaseException | None = None

    def __enter__(self) -> FaultThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.missed.update(self._kinds)

    def _run(self) -> None:
        try:
            while self._kinds and self._wait_for(self._is_running):
                self._wait_for(self._come_further())
                if self._over.is_set():
                    return
                kind = self._kinds.pop()
                if not self._inject(kind):
                    self.missed[kind] += 1
                    continue
                injected_at = time.monotonic()
                if self._wait_for(self._has_lost) and self._wait_for(self._is_running):
                    self.recoveries[kind].append(time.monotonic() - injected_at)
                else:
                    self.missed[kind] += 1
        except BaseException as error:
            self.error = error

    def _wait_for(self, condition: Callable[[], Any]) -> bool:
        """Whether the condition became true before the run ended."""
        while not self._over.wait(_POLL_S):
            if condition():
                return True
        return False

    def _is_running(self) -> bool:
        """Whether all of the victim's ranks have made progress since the last restart."""
        raise NotImplementedError

    def _come_further(self) -> Callable[[], bool]:
        """Returns a condition: more rows have been trained on."""
        raise NotImplementedError

    def _inject(self, kind: str) -> bool:
        """Injects a fault; returns whether it took effect."""
        raise NotImplementedError

    def _has_lost(self) -> bool:
        """Whether the victim noticed the last fault; only for kinds that it must notice."""
        raise NotImplementedError


class TrainingFaults(FaultThread):
    """For CaffeOnSpark; `on_event` must receive the training's events."""

    def __init__(self, net: CountedNet, world: int, kinds: list[str], seed: int):
        super().__init__(kinds, seed)
        self._net, self._world = net, world
        self._generation = self._injected = 0
        self._spared = frozenset(faults.trainers())  # this training starts only later
        self.weights = ""

    def on_event(self, event: dict[str, Any]) -> None:
        if event.get("event") == "restart":
            self._generation = event["generation"]
            self._net.begin(self._generation)
            print(event["reason"], flush=True)

    def _is_running(self) -> bool:
        return len(self._net.progress(self._generation)) >= self._world

    def _come_further(self) -> Callable[[], bool]:
        def last() -> int:
            return max(self._net.progress(self._generation).values(), default=0)

        target = last() + self._random.randint(3, 80)
        return lambda: last() >= target

    def _inject(self, kind: str) -> bool:
        self._injected = self._generation
        index = self._random.randint(0, self._world - 1)
        injector = faults.FaultInjector(kind, 0, index, self._spared)
        try:
            injector.inject()
        except (IndexError, AssertionError, ProcessLookupError):
            return False
        return injector.landed

    def _has_lost(self) -> bool:
        return self._generation > self._injected


class FeedFaults(FaultThread):
    """For a TensorFlow cluster; kills an executor with its node, or a feed task's Python worker."""

    def __init__(self, cluster: Any, folder: Path, kinds: list[str], seed: int):
        super().__init__(kinds, seed)
        self._cluster, self._folder = cluster, folder
        self._lives = 1
        self._kind = ""
        self._fed_before: set[int] = set()

    def _is_running(self) -> bool:
        if self._kind == "feed worker" and not set(feed_workers()) - self._fed_before:
            return False
        nodes = len(self._cluster.cluster_info)
        files = self._folder.glob(f"given-{self._lives - 1:03d}-*")
        return sum(file.stat().st_size > 0 for file in files) >= nodes

    def _come_further(self) -> Callable[[], bool]:
        target = counted_feed.rows_given(self._folder) + self._random.randint(20, 500)
        return lambda: counted_feed.rows_given(self._folder) >= target

    def _inject(self, kind: str) -> bool:
        self._kind = kind
        # No task feeds between two partitions, and until a lost executor has been replaced.
        if not self._wait_for(lambda: self._victims(kind)):
            return False
        victims = self._victims(kind)
        if not victims:
            return False
        self._fed_before = set(feed_workers())
        pid = self._random.choice(victims)
        os.kill(pid, signal.SIGKILL)
        return bool(faults.wait_until(lambda: not faults.is_alive(pid), 2))

    def _victims(self, kind: str) -> list[int]:
        if kind == "executor":
            pids = [node["executor_pid"] for node in self._cluster.cluster_info]
        else:
            pids = feed_workers()
        return [pid for pid in pids if faults.is_alive(pid)]

    def _has_lost(self) -> bool:
        if self._kind != "executor":
            return True
        restarts = self._cluster.restarts.count
        if restarts < self._lives:
            return False
        self._lives = restarts + 1
        return True


def feed_workers() -> list[int]:
    """Python workers that have mapped a node's ring."""
    return [pid for pid in marked_processes("pyspark.daemon") if _has_ring(pid)]


def _has_ring(pid: int) -> bool:
    try:
        return "memfd:hearth-ring" in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    except OSError:
        return False
