"""Metrics that a program reports: accepted and refused values; reporting never blocks."""

from __future__ import annotations

import json
import math
import socket

import numpy as np
import pytest

from hearth.cluster.node.context import NodeContext
from hearth.cluster.node.reports import program_reports
from hearth.cluster.node.reports.bounded_queue import Bounded
from hearth.cluster.node.reports.program_reports import ProgramReports
from hearth.cluster.report_values import unpacked_values


@pytest.fixture
def ends():
    """(the program's reports, the supervisor's end of their socket)."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.setblocking(False)
    yield ProgramReports(ours, clock=lambda: 7.0), theirs
    ours.close()
    theirs.close()


def _refuse(constant):
    raise ValueError(f"{constant} is not JSON")


def received(sock):
    messages = []
    while True:
        try:
            data = sock.recv(1 << 20)
        except BlockingIOError:
            return messages
        if not data:
            return messages
        messages.append(json.loads(data, parse_constant=_refuse))


class ZeroDimensions:
    """A fake tensor, so that the module needs no framework."""

    shape = ()

    def __float__(self):
        return 0.125


def test_numbers_of_all_kinds_arrive_unchanged(ends):
    reports, sock = ends
    values = {
        "loss": ZeroDimensions(),
        "an f32": np.float32(0.1),
        "0-d": np.array(3),
        "größe/train": 2**60,
        "right": True,
        "nan": math.nan,
        "up": math.inf,
        "down": -math.inf,
    }
    reports.report(values, np.int64(5))
    (message,) = received(sock)
    assert (message["step"], message["at"]) == (5, 7.0)
    found = unpacked_values(message["values"])
    assert math.isnan(found.pop("nan"))
    assert found == {
        "loss": 0.125, "an f32": float(np.float32(0.1)), "0-d": 3.0, "größe/train": 2.0**60,
        "right": 1.0, "up": math.inf, "down": -math.inf,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "step", "words"),
    [
        ({"loss": "0.5"}, 1, r"got a str as 'loss': a metric must be a number"),
        ({"loss": None}, 1, r"got a NoneType as 'loss'"),
        ({"loss": 1j}, 1, r"got a complex as 'loss'"),
        ({"loss": [1.0]}, 1, r"got a list as 'loss'"),
        ({"loss": np.zeros(1)}, 1, r"got a ndarray of shape \[1\] as 'loss'"),
        ({"loss": 10**400}, 1, r"got a int as 'loss'"),
        ({}, 1, r"got no metric"),
        ({" ": 1}, 1, r"empty name"),
        ({3: 1}, 1, r"a int as the name of a metric"),
        ({"\ud800": 1}, 1, r"invalid Unicode"),
        ({"x": 1}, -1, r"step=-1: a step must be from 0"),
        ({"x": 1}, 2**63, r"a step must be from 0"),
        ({"x": 1}, 1.5, r"step=1.5: a step must be an integer"),
        ({"x": 1}, True, r"step=True: a step must be an integer"),
        ({"n" * 200_000: 1}, 1, r"the limit is 131072: report fewer at once"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(ends, values, step, words):
    reports, sock = ends
    with pytest.raises((TypeError, ValueError), match=words) as found:
        reports.report(values, step)
    assert "\n" not in str(found.value)
    assert received(sock) == []


def test_too_many_names_are_refused_but_known_ones_work(ends, monkeypatch):
    monkeypatch.setattr(program_reports, "_MOST_NAMES", 3)
    reports, sock = ends
    reports.report({"a": 1, "b": 1}, 0)
    reports.report({"c": 1}, 1)
    with pytest.raises(ValueError, match="more than 3 different names of metrics, the last 'd'"):
        reports.report({"d": 1}, 2)
    reports.report({"a": 2}, 2)
    assert [message["step"] for message in received(sock)] == [0, 1, 2]


def test_without_a_step_each_report_is_the_next_one(ends):
    reports, sock = ends
    reports.report({"x": 1})
    reports.report({"x": 1}, 10)
    reports.report({"x": 1})
    reports.resume(40)
    reports.report({"x": 1})
    steps = [message.get("step", message.get("back_to")) for message in received(sock)]
    assert steps == [0, 10, 11, 40, 40]


def test_a_blocked_supervisor_delays_no_step_and_loses_no_last_value(ends):
    reports, sock = ends
    reports._waiting = Bounded(10)
    reports.report({"rare": 1.0}, 0)
    steps = 5000  # more than the socket can buffer
    for step in range(1, steps):
        reports.report({"loss": step}, step)
    assert len(reports._waiting) <= 10
    came = received(sock)
    reports.flush()
    came += received(sock)
    lost = sum(message.get("left_out", 0) for message in came)
    shown = [message["step"] for message in came if "step" in message]
    assert lost > 0 and len(shown) + lost == steps
    assert shown == sorted(shown) and shown[0] == 0 and shown[-1] == steps - 1


def test_reports_are_thinned_but_the_last_of_each_metric_stays():
    waiting = Bounded(100)
    waiting.add({"step": 0, "values": {"once": 1}})
    waiting.add({"back_to": 0})
    for step in range(1, 1000):
        waiting.add({"step": step, "values": {"loss": step}})
    count, left = len(waiting), []
    while len(waiting):
        left.append(waiting.take())
    assert count <= 102 and count + waiting.left_out == 1001
    assert left[0] == {"step": 0, "values": {"once": 1}} and left[1] == {"back_to": 0}
    assert left[-1]["step"] == 999


def test_the_same_program_runs_outside_of_a_cluster():
    context = NodeContext(0, "worker", 0, {"worker": ["h:1"]}, "", "")
    context.report({"val/loss": 1}, step=1, loss=0.5)
    assert not context.should_stop
    with pytest.raises(TypeError, match="got a str as 'loss'"):
        context.report(loss="x")
