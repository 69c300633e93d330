"""The line with the nodes' row rates that the driver prints."""

from __future__ import annotations

import io
import threading

from hearth.cluster.driver import pace
from hearth.cluster.driver.pace import Pace, PaceLine
from hearth.spark.progress import Progress


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def note(line, clock, rank, now, taken, waited_s):
    clock.now = now
    line.note(rank, {"taken": taken, "waited_s": waited_s})


def test_the_line_has_each_nodes_rate_and_wait():
    clock = Clock()
    line = Pace({"worker": [0, 1]}, clock)
    assert line.line() == ""
    for rank in (0, 1):
        note(line, clock, rank, 9.0, 50, 5.0)
        note(line, clock, rank, 10.0, 100, 5.0)
    note(line, clock, 0, 12.0, 2100, 5.5)
    note(line, clock, 1, 12.0, 300, 6.8)
    assert line.line() == "1,100 rows/s: worker:0 1,000 (waits 25%), worker:1 100 (waits 90%)"


def test_a_silent_node_counts_as_idle_not_as_waiting():
    clock = Clock()
    line = Pace({"chief": [0], "worker": [1]}, clock)
    for rank in (0, 1):
        note(line, clock, rank, 0.0, 0, 0.0)
        note(line, clock, rank, 0.0, 0, 0.0)
        note(line, clock, rank, 1.0, 500, 0.0)
    note(line, clock, 0, 5.0, 2500, 0.0)
    assert line.line() == "500 rows/s: chief:0 500 (waits 0%), worker:0 0 (silent for 4 s)"


def test_the_first_step_and_earlier_time_do_not_count():
    clock = Clock()
    line = Pace({"worker": [0, 1]}, clock)
    note(line, clock, 0, 0.0, 32, 9.0)  # imports and compiles
    note(line, clock, 1, 0.0, 32, 9.0)
    assert line.line() == ""
    note(line, clock, 0, 8.0, 64, 9.0)
    assert line.line() == ""
    note(line, clock, 0, 9.0, 1064, 9.0)
    assert line.line() == "1,000 rows/s: worker:0 1,000 (waits 0%), worker:1 0 (starts)"
    clock.now = 69.0
    line.begin()  # a second train(), a minute later
    note(line, clock, 0, 69.0, 1096, 69.0)
    assert line.line() == ""
    note(line, clock, 0, 69.5, 1596, 69.0)
    note(line, clock, 0, 70.5, 2596, 69.0)
    assert line.line() == "1,000 rows/s: worker:0 1,000 (waits 0%)"


def test_of_many_nodes_the_slowest_are_named():
    clock = Clock()
    line = Pace({"worker": list(range(20))}, clock)
    for rank in range(20):
        note(line, clock, rank, 0.0, 0, 0.0)
        note(line, clock, rank, 0.0, 0, 0.0)
    for rank in range(20):
        note(line, clock, rank, 1.0, 100 if rank != 13 else 1, 0.0)
    assert "worker:13 1 (waits 0%)" in line.line()
    assert line.line().endswith(", 14 faster ones")


def test_the_line_is_shown_while_rows_flow_and_ends_with_them(monkeypatch):
    monkeypatch.setattr(pace, "_LINES_S", 0.01)
    stream, asked = io.StringIO(), threading.Event()

    def line():
        if stream.getvalue().count("\n") >= 2:
            asked.set()
        return "5 rows/s: worker:0 5 (waits 0%)"

    with PaceLine(line, Progress(stream)):
        assert asked.wait(30)
    assert stream.getvalue().splitlines()[0] == "5 rows/s: worker:0 5 (waits 0%)"
    assert not any(thread.name == "hearth-pace" for thread in threading.enumerate())
