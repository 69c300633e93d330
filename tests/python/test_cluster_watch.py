"""The driver's use of nodes' reports before a failure, especially of ranks without rows."""

from __future__ import annotations

import json
import logging
import queue
import threading

import pytest

from hearth.cluster.driver import watch as watch_module
from hearth.cluster.driver.watch import ClusterWatch
from hearth.cluster.errors import FeedTimeoutError, NodeError, reported_to_driver, took_none
from hearth.cluster.node import data_feed
from hearth.cluster.node.data_feed import waited_s
from hearth.native.failure import TaskError
from hearth.ranks.steps import AHEAD

STALL = (
    "rank 0 on host h has waited for 30 s in all-reduce of 8 bytes: rank 1 on host h "
    "has not arrived"
)
LATE = "TimeoutError: all-reduce: rank 1 on host h had not arrived before the deadline"


class Coordinator:
    """Returns a test's events, then raises its failure."""

    def __init__(self, events, error):
        self._events = queue.SimpleQueue()
        for rank, event in events:
            self._events.put((rank, json.dumps(event)))
        self._error = error
        self.asked = []

    def next_event(self, timeout_s):
        try:
            return self._events.get_nowait()
        except queue.Empty:
            return None

    def failure(self):
        failure = {"rank": 0, "host": "h", "lost": False, "code": "internal"}
        return {**failure, "message": self._error, "error": self._error}

    def broadcast(self, text):
        self.asked.append(json.loads(text))

    def close(self):
        pass


def failure_after(events, error=LATE):
    coordinator = Coordinator(events, error)
    watch = ClusterWatch(coordinator, {"worker": [0, 1]}, lambda failure: None, None)
    watch.wait(lambda: False, 30)
    watch.close()
    with pytest.raises(NodeError) as found:
        watch.check()
    return str(found.value), coordinator.asked


def test_a_watch_closed_by_the_interpreter_can_be_closed_again():
    watch = ClusterWatch(Coordinator([], LATE), {"worker": [0]}, lambda failure: None, None)
    watch.close()
    watch.close()


def test_a_stall_names_the_rank_without_rows_and_in_step(caplog):
    caplog.set_level(logging.WARNING, "hearth.cluster.watch")
    events = [
        (0, {"event": "warning", "text": STALL, "stalled": True}),
        (0, {"event": "waits", "seconds": 0.0}),
        (1, {"event": "waits", "seconds": 29.0}),
        (0, {"event": "late"}),
    ]
    error, asked = failure_after(events)
    assert asked == [{"op": "waits"}]
    hint = "worker:1 has waited for rows for 29 s: a rank without rows blocks the others"
    assert hint in error and "in_step()" in error and "worker:0 has" not in error
    assert hint in caplog.text


def test_other_failures_have_no_stall_hint():
    error, _ = failure_after([(1, {"event": "waits", "seconds": 29.0})], "ValueError: wrong shape")
    assert "in_step" not in error


@pytest.mark.parametrize(("name", "counts"), [("main", True), (AHEAD, False)])
def test_a_wait_for_rows_counts_unless_steps_go_on_without_them(name, counts):
    entered, leave, waited = threading.Event(), threading.Event(), []

    def wait():
        with data_feed._waiting():
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=wait, name=name)
    thread.start()
    entered.wait(30)
    waited.append(waited_s())
    leave.set()
    thread.join()
    assert (waited[0] > 0) == counts
    assert waited_s() == 0


class Silent:
    """A coordinator that fails once `failed` is set, and returns nothing before."""

    def __init__(self):
        self.failed = threading.Event()

    def next_event(self, timeout_s):
        self.failed.wait(timeout_s)

    def failure(self):
        if not self.failed.is_set():
            return None
        return {"rank": 1, "host": "h", "lost": True, "code": "unavailable", "error": "went away",
                "message": "rank 1 on host h went away"}  # fmt: skip

    def broadcast(self, text):
        pass

    def close(self):
        pass


def sparks_error(error):
    with pytest.raises(TaskError) as caught, reported_to_driver():
        raise error
    return RuntimeError(f"Job aborted due to stage failure: {caught.value}")


CONSEQUENCES = [sparks_error(NodeError("went away")), RuntimeError("ExecutorLostFailure"), None]


@pytest.mark.parametrize("error", CONSEQUENCES)
def test_a_jobs_error_that_may_follow_waits_for_the_cause(monkeypatch, error):
    monkeypatch.setattr(watch_module, "_CAUSE_WAIT_S", 60.0)
    coordinator = Silent()
    watch = ClusterWatch(coordinator, {"worker": [0, 1]}, lambda failure: None, None)
    threading.Thread(target=coordinator.failed.set).start()
    failure = watch.await_cause(error)
    assert failure is not None and failure.text == "worker:1 on host h went away"
    watch.close()


def test_the_users_own_error_waits_for_nothing(monkeypatch):
    monkeypatch.setattr(watch_module, "_CAUSE_WAIT_S", 1e6)
    watch = ClusterWatch(Silent(), {"worker": [0, 1]}, lambda failure: None, None)
    assert watch.await_cause(RuntimeError("PythonException: ValueError: odd")) is None
    watch.close()


def test_a_feeds_timeout_names_in_step_and_itself():
    text = str(FeedTimeoutError(took_none("worker:0 on host h", "rows", 300)))
    assert "worker:0 on host h took no rows for 300 s" in text
    assert "timeout_s" in text and "in_step()" in text


def test_reports_before_the_failure_are_included():
    events = [(0, {"event": "joined"})] * 50 + [(1, {"event": "commit"})]
    watch = ClusterWatch(Coordinator(events, LATE), {"worker": [0, 1]}, lambda failure: None, None)
    watch.wait(lambda: False, 30)
    assert watch.failure is not None and watch.committed
    watch.close()


def test_the_first_nodes_wait_for_a_cause_ends_when_no_node_is_left_that_could_report_it():
    lost, done = {"event": "awaits_cause"}, {"event": "done"}

    def answers(*events, workers=3):
        template = {"worker": list(range(workers)), "evaluator": [workers]}
        coordinator = Coordinator(events, LATE)
        watch = ClusterWatch(coordinator, template, lambda failure: None, None)
        watch.wait(lambda: False, 30)
        watch.close()
        return coordinator.asked

    assert answers((0, lost), (2, lost), (3, done)) == []  # the cause: worker:1, possibly killed
    assert answers((1, done), (0, done), (2, done)) == []
    none = {"op": "no_cause", "ended": "worker:1"}
    assert answers((0, lost), (1, done), (2, lost)) == [{**none, "to": 0}]
    assert answers((1, done), (2, lost), (0, lost)) == [{**none, "to": 2}]
    ended = [(node, done) for node in range(7)]
    (many,) = answers(*ended, (7, lost), workers=8)
    assert many["ended"] == "worker:0, worker:1, worker:2, worker:3, worker:4 and 2 more"
