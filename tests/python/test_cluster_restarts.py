"""Failures after which a cluster restarts; without Spark."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import pytest

from hearth.cluster.driver import missing_nodes
from hearth.cluster.driver.restart import Restarts
from hearth.cluster.errors import ClusterError, NodeError, ReservationTimeoutError
from hearth.cluster.task.node_job import NodeOptions
from hearth.native.failure import Failure
from hearth.spark import slots

KILLED = Failure("worker:1 was killed", rank=1, code="unavailable")
LOST = Failure("worker:1 went away", rank=1, code="unavailable", lost=True)
RAISED = Failure("worker:1 raised", rank=1)


class Start:
    """One start of the cluster, whose nodes end with `failure`."""

    def __init__(self, failure, committed):
        self.watch = SimpleNamespace(failure=failure, committed=committed)
        self.watch.await_cause = lambda: failure
        self.watch.conclude = lambda failure: setattr(self.watch, "failure", failure)
        self.coordinator, self.scales_up = None, ""
        self.close = lambda wait_for_nodes: None

    def error(self):
        return NodeError.of(self.watch.failure)


class Cluster:
    def __init__(self, *starts):
        self.spark = SimpleNamespace(session=SimpleNamespace(conf={}), profile=None)
        self.node_ids, self.meta = [0, 1], {}
        self.plan = SimpleNamespace(least_workers=0)
        self.ledger = SimpleNamespace(start_again=lambda: None)
        self.reports = SimpleNamespace(note_restart=lambda count, reason: None)
        self._starts = iter([Start(*start) for start in starts])
        self.check_not_over = lambda: None
        self.launch()

    def launch(self):
        self.running = next(self._starts)


@pytest.fixture(autouse=True)
def no_wait(monkeypatch):
    monkeypatch.setattr(slots.SlotWait, "wait", lambda self: None)


def run_through(*starts):
    """Restarts a cluster with these starts; returns the number of restarts and the final error."""
    cluster = Cluster(*starts)
    restarts = Restarts(cluster)
    for _ in starts:
        running = cluster.running
        try:
            restarts.recover(running, running.error())
        except NodeError as error:
            with pytest.raises(NodeError) as again:  # like shutdown()
                restarts.recover(running, running.error())
            assert str(again.value) == str(error)
            return restarts.count, str(error)
    return restarts.count, None


@pytest.mark.parametrize(
    ("starts", "restarts"),
    [
        ([(KILLED, False), (KILLED, False)], 1),
        ([(KILLED, True), (KILLED, False)], 1),
        ([(KILLED, False), (KILLED, True), (KILLED, True), (KILLED, False)], 3),
        ([(KILLED, False), (LOST, False), (KILLED, False)], 2),
        ([(KILLED, False), (LOST, True), (KILLED, False), (KILLED, False)], 3),
    ],
)
def test_a_second_kill_without_a_checkpoint_in_between_is_final(starts, restarts):
    count, error = run_through(*starts)
    assert count == restarts
    assert error.startswith("worker:1 was killed; it is the second such kill without a checkpoint")


def test_lost_executors_need_no_checkpoint():
    assert run_through(*[(LOST, False)] * 5, (RAISED, True)) == (5, "worker:1 raised")


def test_the_limit_of_ten_restarts_counts_from_the_last_checkpoint():
    starts = [(LOST, False)] * 9 + [(LOST, True)] + [(LOST, False)] * 10
    assert run_through(*starts[:9], (RAISED, True))[0] == 9
    assert run_through(*[(LOST, False)] * 11) == (
        10,
        "worker:1 went away (failed after 10 restarts)",
    )
    assert run_through(*starts, (LOST, False)) == (
        19,
        "worker:1 went away (failed after 10 restarts since the last checkpoint)",
    )
    assert run_through(*[(LOST, True)] * 40, (RAISED, True)) == (40, "worker:1 raised")


def test_an_out_of_memory_kill_is_final(monkeypatch):
    from hearth.spark import restarts

    words = iter(["killed by YARN for exceeding physical memory limits. 5.1 of 5 GB used."])
    removed = SimpleNamespace(memory_kill=lambda: next(words, None))
    monkeypatch.setattr(restarts, "RemovedExecutors", lambda spark: removed)
    count, error = run_through((KILLED, True))
    assert (count, "5.1 of 5 GB used" in error) == (0, True)


@pytest.mark.parametrize("least", [0, 1])
def test_a_start_that_loses_an_executor_continues_with_fewer_nodes(least):
    cluster = Cluster((LOST, False), (RAISED, False))
    cluster.plan.least_workers, launch, late = least, cluster.launch, ["worker:1 did not come"]
    cluster.fit_workers = lambda: None

    def launch_late():
        if late:
            raise ReservationTimeoutError(late.pop())
        launch()

    cluster.launch = launch_late
    restarts, failed = Restarts(cluster), cluster.running
    failed.watch.amend = lambda text: None
    if least:
        restarts.recover(failed, failed.error())
        assert (restarts.count, cluster.running is failed) == (2, False)
    else:
        with pytest.raises(ReservationTimeoutError, match="did not come"):
            restarts.recover(failed, failed.error())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_kill_alone_is_reported_as_a_loss(number):
    from hearth.cluster.node.supervisor import Supervisor

    child = SimpleNamespace(wait=lambda: -number)
    ended = Supervisor._how_it_ended(SimpleNamespace(_child=child))
    assert number.name in ended["error"]
    assert Failure.of({"text": "", **ended}).is_loss == (number == signal.SIGKILL)


def test_a_start_waits_for_the_executor_that_feeds_rows(monkeypatch):
    request = SimpleNamespace(amount=1)
    profile = SimpleNamespace(taskResources={"cpus": request}, executorResources={})
    session = SimpleNamespace(_jsc=None)
    spark = SimpleNamespace(session=session, profile=profile, conf=lambda key, default: default)
    options = NodeOptions(background=True, holds=True)
    found = []

    def slots_now(session):  # from the third call on, the lost executor has been replaced
        found.append(2 if len(found) < 2 else 4)
        return found[-1]

    monkeypatch.setattr(missing_nodes, "slots_now", slots_now)
    monkeypatch.setattr(missing_nodes.time, "sleep", lambda seconds: None)
    missing_nodes.check_feeders(spark, options, 2, wait_s=60)
    assert found == [2, 2, 4]
    found.clear()
    with pytest.raises(ClusterError, match="the nodes hold 2 of the executors' 2 cores"):
        missing_nodes.check_feeders(spark, options, 2)
    assert found == [2]
