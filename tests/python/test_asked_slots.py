"""Requests for executors under dynamic allocation, with a fake Spark."""

from types import SimpleNamespace

import pytest

from hearth.spark import slots
from hearth.spark.dynamic_allocation import HeldExecutors, ask_for_slots
from hearth.spark.slots import SlotWait, most_slots

ON = {"spark.dynamicAllocation.enabled": "true"}


class Asked(list):
    """A fake session that records the requested numbers of executors by resource profile. With the
    default profile 0 an executor has three slots, with others two.
    """

    def __init__(self, conf, stages=()):
        super().__init__()
        self.conf = conf
        store = SimpleNamespace(activeStages=lambda: Seq(stages))
        manager = SimpleNamespace(
            defaultResourceProfile=lambda: profile(0), resourceProfileFromId=profile
        )
        backend = SimpleNamespace(
            requestTotalExecutors=lambda counts, local, hosts: self.append(dict(counts))
        )
        context = SimpleNamespace(
            resourceProfileManager=lambda: manager,
            statusStore=lambda: store,
            schedulerBackend=lambda: backend,
            conf=lambda: None,
        )
        self._jsc = SimpleNamespace(sc=lambda: context)
        immutable = SimpleNamespace(HashMap=HashMap)
        self._jvm = SimpleNamespace(
            scala=SimpleNamespace(collection=SimpleNamespace(immutable=immutable))
        )


class Seq(tuple):
    apply = tuple.__getitem__

    def size(self):
        return len(self)


class HashMap(dict):
    def updated(self, key, value):
        return HashMap(self | {key: value})


def profile(number):
    return SimpleNamespace(id=lambda: number, maxTasksPerExecutor=lambda conf: 2 if number else 3)


def stage(tasks, done, number=0):
    return SimpleNamespace(
        numTasks=lambda: tasks, numCompleteTasks=lambda: done, resourceProfileId=lambda: number
    )


@pytest.mark.parametrize(
    ("conf", "stages", "asked"),
    [
        (ON, [], [{0: 3}]),
        (ON, [stage(40, 5)], [{0: 12}]),
        (ON, [stage(4, 1, 7), stage(9, 0, 7)], [{0: 3, 7: 6}]),
        (ON | {"spark.dynamicAllocation.maxExecutors": "2"}, [], [{0: 2}]),
        ({}, [], []),
    ],
)
def test_executors_are_requested_for_nodes_and_running_tasks(conf, stages, asked):
    session = Asked(conf, stages)
    ask_for_slots(session, 8)
    assert session == asked


def test_executors_of_a_profile_are_requested_beside_those_of_running_tasks():
    session = Asked(ON, [stage(3, 0, 7), stage(4, 0)])
    ask_for_slots(session, 8, SimpleNamespace(_java_resource_profile=profile(7)))
    assert session == [{7: 4, 0: 2}]


def test_lost_executors_are_requested_again(monkeypatch):
    found = iter([1, 1, 2])
    monkeypatch.setattr(slots, "slots_now", lambda session, profile: next(found))
    monkeypatch.setattr(slots.time, "sleep", lambda seconds: None)
    session = Asked(ON)
    SlotWait(session, 2).wait()
    assert session == [{0: 1}]


def test_tasks_of_a_profile_are_started_for_spark_to_bring_their_executors(monkeypatch):
    monkeypatch.setattr(slots, "slots_now", lambda session, profile: 0)
    monkeypatch.setattr(slots.time, "sleep", lambda seconds: pytest.fail("it waits"))
    session = Asked(ON)
    SlotWait(session, 2, profile=object()).wait()
    assert session == []


def test_workers_start_with_the_current_executors(monkeypatch):
    monkeypatch.setattr(slots, "slots_now", lambda session, profile: 0)
    session = Asked(ON | {"spark.hearth.executorWait": "0s"})
    slots.await_executors(session, 8, lambda line: None)
    session.conf = {}
    slots.await_executors(session, 8, lambda line: pytest.fail(line))


def test_a_start_waits_for_executors_of_its_profile(monkeypatch):
    found = iter([0, 2, 8])
    wanted = SimpleNamespace(_java_resource_profile=profile(7), executorResources={"cores": 2})
    monkeypatch.setattr(slots, "slots_now", lambda session, given: next(found))
    monkeypatch.setattr(slots.time, "sleep", lambda seconds: None)
    session = Asked(ON)
    slots.await_executors(session, 8, lambda line: None, wanted)
    assert session == [{7: 4}, {7: 4}]


def test_a_start_waits_for_the_maximum_of_dynamic_allocation(monkeypatch):
    found = iter([0, 2, 3])
    monkeypatch.setattr(slots, "slots_now", lambda session, profile: next(found))
    monkeypatch.setattr(slots.time, "sleep", lambda seconds: None)
    limits = {"spark.master": "yarn", "spark.dynamicAllocation.maxExecutors": "3"}
    slots.await_executors(Asked(ON | limits), 8, lambda line: None)
    assert next(found, None) is None


@pytest.mark.parametrize(
    ("conf", "most"),
    [
        ({"spark.executor.instances": "3"}, 6),
        ({"spark.executor.instances": "3", "spark.task.cpus": "0.5"}, 12),
        (ON | {"spark.executor.instances": "3"}, None),
        (ON | {"spark.dynamicAllocation.maxExecutors": "8"}, 16),
    ],
)
def test_yarn_executors_are_limited_by_dynamic_allocation(conf, most):
    conf = {"spark.master": "yarn", "spark.executor.cores": "2", **conf}
    assert most_slots(SimpleNamespace(conf=conf)) == most


class Block:
    kept = False

    def mapPartitions(self, function):
        return self

    def persist(self, level):
        self.kept = True

    def unpersist(self):
        self.kept = False

    def count(self):
        assert self.kept


def test_executors_are_held_until_the_next_start_has_executors():
    executors, first, second = HeldExecutors(), Block(), Block()
    executors.action(first, list)()
    act = executors.action(second, list)
    assert first.kept and second.kept
    act()
    assert second.kept and not first.kept
    executors.release()
    assert not second.kept
