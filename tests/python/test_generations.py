"""A driver that runs many attempts leaks no memory, threads or descriptors.

The ranks are members in threads; neither Spark nor trainers run.
"""

from __future__ import annotations

import gc
import json
import os
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hearth.native._core import Member

from hearth.caffe_jobs import launch

GENERATIONS = 1000
WARM_UP = 100
WORLD = 2


def usage() -> dict[str, int]:
    """Threads, descriptors and resident kilobytes of this process."""
    status = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in status)
    return {
        "threads": int(fields["Threads"]),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "kilobytes": int(fields["VmRSS"].split()[0]),
    }


class Stage:
    """Simulates Spark's barrier stage: every rank joins, and rank 0 ends last."""

    def __init__(self, spec: Any):
        self._spec = spec
        self._met: list[int] = []

    def _rank(self, rank: int) -> None:
        host, port = self._spec.coordinator
        where = {"host": host, "port": port, "token": self._spec.token}
        place = {"generation": self._spec.generation, "rank": rank, "world": self._spec.world}
        member = Member(**where, **place, host_name="h")
        self._met.append(len(member.reserve("{}")))
        member.send_event(json.dumps({"event": "progress", "rank": rank}))
        member.done()

    def collect(self) -> list[Any]:
        ranks = [
            threading.Thread(target=self._rank, args=(rank,)) for rank in range(self._spec.world)
        ]
        for thread in ranks:
            thread.start()
        for thread in ranks:
            thread.join()
        return [SimpleNamespace(event=json.dumps({"event": "done", "ranks": max(self._met)}))]


class Session:
    """The part of a SparkSession that a launch uses."""

    _jsc = SimpleNamespace(
        sc=lambda: SimpleNamespace(
            startTime=lambda: 0,
            applicationAttemptId=lambda: SimpleNamespace(isEmpty=lambda: True),
            isStopped=lambda: False,
            statusStore=lambda: SimpleNamespace(
                executorList=lambda active_only: SimpleNamespace(size=lambda: 0)
            ),
            maxNumConcurrentTasks=lambda profile: WORLD,
            resourceProfileManager=lambda: SimpleNamespace(defaultResourceProfile=lambda: None),
        )
    )
    sparkContext = SimpleNamespace(
        _jsc=_jsc, getConf=dict, master="local[2]", defaultParallelism=2, addJobTag=lambda tag: None
    )

    def __init__(self) -> None:
        settings: dict[str, str] = {}
        self.conf = SimpleNamespace(
            get=lambda key, default=None: settings.get(key, default),
            set=settings.__setitem__,
            unset=lambda key: settings.pop(key, None),
        )

    def range(self, *_: int) -> Any:
        return SimpleNamespace(mapInArrow=lambda task, schema, barrier: Stage(task.args[0]))


@pytest.fixture
def no_garbage() -> None:
    """Frees leftovers of earlier tests, so that this test does not count them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.mark.filterwarnings("error")  # fails on a thread's unhandled exception, for example
@pytest.mark.usefixtures("no_garbage")
def test_a_thousand_generations_leak_no_resources() -> None:
    session, before = Session(), {}
    for generation in range(GENERATIONS):
        if generation == WARM_UP:
            before = usage()
        result = launch.run(session, launch.Plan(WORLD, {"mode": "train"}), lambda event: None)
        assert result["ranks"] == WORLD
    after = usage()
    # A library may start a thread or two; a leak would add one per generation.
    assert after["threads"] < before["threads"] + 10
    assert after["descriptors"] < before["descriptors"] + 10
    assert after["kilobytes"] - before["kilobytes"] < 4096
