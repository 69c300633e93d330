"""Ranks that lost their task slots with an executor: awaited, reported, and failed at the limit."""

import itertools
import re
import time

import pytest
import test_launch

from hearth import HearthError
from hearth.caffe_jobs import launch
from hearth.spark import slots

start = test_launch.start  # a pytest fixture


def test_the_error_names_a_lost_host_without_replacement(start, monkeypatch):
    restarted = []
    monkeypatch.setattr(slots, "slots_now", lambda spark, profile=None: 1 if restarted else 2)
    monkeypatch.setattr(slots, "_WAIT", "1s")

    def on_event(event):
        if event["event"] == "restart":
            restarted.append(event)

    said = r"rank 1 on host \S+ .* not restarted: 2 ranks need 2 .*the cluster has 1 and got"
    with pytest.raises(HearthError, match=said):
        start(test_launch.DIES_UNTIL.format(generation=5), max_restarts=3, on_event=on_event)


def test_a_restart_waits_for_executors_and_reports_it(start, monkeypatch):
    restarted = []
    later = itertools.chain([0, 1, 1], itertools.repeat(2))
    monkeypatch.setattr(
        slots, "slots_now", lambda spark, profile=None: next(later) if restarted else 2
    )

    def on_event(event):
        if event["event"] == "restart":
            restarted.append(event)

    result, events = start(
        test_launch.DIES_UNTIL.format(generation=1), max_restarts=1, on_event=on_event
    )
    assert result["generation"] == 1
    seen = [event["text"] for event in events if event["event"] == "waiting"]
    assert [re.sub(r"\(\d+ of", "(N of", text) for text in seen] == [
        f"waiting for executors: {n} of 2 slots (N of 300 s)" for n in (0, 1)
    ]


def test_slots_lost_during_the_wait_are_an_error(start, monkeypatch):
    few = iter([2])
    monkeypatch.setattr(slots, "slots_now", lambda spark, profile=None: next(few, 1))
    monkeypatch.setattr(slots, "_WAIT", "1s")
    monkeypatch.setattr(launch, "_SLOTS_WAIT_S", 0.2)
    begin = time.monotonic()
    with pytest.raises(HearthError, match=r"2 ranks need 2 task slots .* the cluster has 1"):
        start("join()\ntime.sleep(600)")
    assert time.monotonic() - begin < 300


def test_ranks_start_when_their_slots_return(start, monkeypatch):
    later = itertools.chain([2, 1, 1], itertools.repeat(2))
    monkeypatch.setattr(slots, "slots_now", lambda spark, profile=None: next(later))
    monkeypatch.setattr(launch, "_SLOTS_WAIT_S", 0.2)
    _, events = start('join()\ntime.sleep(3)\nmeet("a")')
    assert [event["event"] for event in events].count("waiting") >= 1
