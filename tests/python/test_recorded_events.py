"""Events of a training with Spark Connect are recorded, and later reported as a history."""

from __future__ import annotations

import json
import math
import queue
import threading

import pytest

from hearth.caffe_jobs import recorded_events
from hearth.caffe_jobs.recorded_events import RecordedEvents
from hearth.caffeonspark.history import History


class Coordinator:
    """Returns given events, then None, like the core's when it is closed and drained."""

    def __init__(self, events):
        self.events = queue.SimpleQueue()
        self.done, self.failed, self.closed = set(), None, False
        for event in events:
            self.tell(event)

    def tell(self, event, rank=0):
        if event == {"event": "done"}:
            self.done.add(rank)
        self.events.put((rank, json.dumps(event)))

    def finished(self):
        return self.done == {0, 1}

    def failure(self):
        return self.failed

    def next_event(self, timeout_s):
        event = self.events.get(timeout=timeout_s)
        if event is None:
            self.events.put(None)
        return event

    def close(self):
        self.closed = True
        self.events.put(None)


def progress(iteration, loss=0.5):
    return {
        "event": "progress", "iteration": iteration, "loss": loss, "lr": 0.1, "images_per_s": 9.0,
    }  # fmt: skip


VALIDATION = {"event": "validation", "iteration": 20, "outputs": {"accuracy": [0.75]}}


def test_curves_and_warnings_are_recorded():
    events = [
        progress(1), {"event": "log", "level": "I", "text": "much"},
        {"event": "log", "level": "W", "text": "mind"}, VALIDATION, ["no event"],
    ]  # fmt: skip
    kept = RecordedEvents(Coordinator(events)).finish()
    assert [event["event"] for event in kept] == ["progress", "log", "validation"]
    assert [event["seconds"] for event in kept] == sorted(event["seconds"] for event in kept)


@pytest.mark.parametrize("fails", [False, True])
def test_the_coordinator_stays_until_all_ranks_are_done_or_one_has_failed(fails):
    coordinator = Coordinator([{"event": "done"}])
    kept = RecordedEvents(coordinator)
    thread = threading.Thread(target=kept.finish_done)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    assert not coordinator.closed
    coordinator.failed = {"rank": 1} if fails else None
    coordinator.tell(VALIDATION if fails else {"event": "done"}, rank=1)
    thread.join(60)
    assert not thread.is_alive()
    assert coordinator.closed


def test_finishing_twice_gives_the_same():
    keeper = RecordedEvents(Coordinator([VALIDATION]))
    assert keeper.finish() == keeper.finish()


def test_many_events_are_thinned_but_the_newest_stays():
    kept = RecordedEvents(Coordinator([progress(i) for i in range(1, 5001)])).finish()
    iterations = [event["iteration"] for event in kept]
    assert iterations == [*range(1, 5001, 4), 5000]


def test_a_long_training_keeps_its_start():
    events = [{**progress(i), "event": "rank", "rank": i % 2} for i in range(100_000)]
    kept = RecordedEvents(Coordinator(events)).finish()
    for rank in (0, 1):
        iterations = [event["iteration"] for event in kept if event["rank"] == rank]
        assert iterations[0] == rank and iterations[-1] == 99_998 + rank
        assert 1000 <= len(iterations) <= 2001


def histogram(iteration, parts=30):
    return {
        "event": "histogram", "iteration": iteration, "tag": "weights/ip/0", "counts": [7] * parts,
    }  # fmt: skip


def test_histograms_are_limited_by_bytes(monkeypatch):
    monkeypatch.setattr(recorded_events, "_MOST_HISTOGRAM_BYTES", 100_000)
    events = [histogram(i // 2) for i in range(2, 4002)]
    kept = RecordedEvents(Coordinator(events)).finish()
    assert 40_000 < sum(len(json.dumps(event)) for event in kept) <= 130_000
    iterations = [event["iteration"] for event in kept]
    assert iterations[0] == 1 and iterations[-1] == 2000
    assert all(iterations.count(i) == 2 for i in iterations)
    gaps = {b - a for a, b in zip(iterations[::2][:-2], iterations[::2][1:-1], strict=True)}
    assert len(gaps) == 1


def test_of_oversized_histograms_the_first_and_last_stay(monkeypatch):
    monkeypatch.setattr(recorded_events, "_MOST_HISTOGRAM_BYTES", 1000)
    kept = RecordedEvents(Coordinator([histogram(i, 5000) for i in range(1, 6)])).finish()
    assert [event["iteration"] for event in kept] == [1, 5]


def test_events_are_sent_with_the_numbers_of_the_record():
    class Sender:
        def __init__(self):
            self.sent = []

        def put(self, number, event):
            self.sent.append((number, event["event"]))

        def close(self):
            self.sent.append("end")

    coordinator, sender = Coordinator([progress(1), {"event": "log", "level": "I"}]), Sender()
    coordinator.events.put((1, json.dumps({"event": "done"})))
    coordinator.events.put((0, json.dumps(VALIDATION)))
    kept = RecordedEvents(coordinator, sender).finish()
    assert sender.sent == [(1, "progress"), (2, "log"), (4, "validation"), "end"]
    assert [event["number"] for event in kept] == [1, 4]


def test_a_history_has_times_and_rewinds_at_a_restart():
    history = History()
    for event in (
        {**progress(10), "seconds": 1.5},
        {**progress(30, None), "seconds": 2.5},
        VALIDATION,
        {"event": "ready", "iteration": 20},
        progress(21),
    ):
        history.take(event)
    assert [row[:4] for row in history.rows] == [
        (10, "TRAIN", "loss", 0.5), (10, "TRAIN", "lr", 0.1), (20, "TEST", "accuracy", 0.75),
        (21, "TRAIN", "loss", 0.5), (21, "TRAIN", "lr", 0.1),
    ]  # fmt: skip
    assert history.rows[0][4:] == (1.5, 9.0)
    history.take(progress(22, None))
    assert math.isnan(history.rows[-2][3])


def test_a_long_history_is_thinned_out():
    history = History()
    for iteration in range(1, 30_001):
        history.take(progress(iteration))
    assert 10_000 <= len(history.rows) <= 20_000
    assert history.rows[-1][0] == 30_000
    assert history.rows[0][0] == pytest.approx(1, abs=4)
