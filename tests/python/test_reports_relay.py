"""Relays reports and output from a program to the driver: rates, files, and a program's end."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import threading

import pytest

from hearth.cluster.node.reports import output_lines
from hearth.cluster.node.reports import relay as relay_module
from hearth.cluster.node.reports.output_lines import Limit, Lines
from hearth.cluster.node.reports.relay import Relay

JOB = {"name": "worker:0", "called": "rank 0", "counts": True, "captures": "driver"}
LABEL = f"[rank 0 {socket.gethostname()}]"
REPORT = (
    "import socket, sys\n"
    "from hearth.cluster.node.reports.program_reports import ProgramReports\n"
    "reports = ProgramReports(socket.socket(fileno=int(sys.argv[1])))\n"
)


class Run:
    """A program with a relay; its standard output and error go to files of the test."""

    def __init__(self, tmp_path, monkeypatch, program, stdin=None, **job):
        self.files = [tmp_path / "stdout", tmp_path / "stderr"]
        self.events = queue.SimpleQueue()
        own = {n: os.open(path, os.O_WRONLY | os.O_CREAT) for n, path in enumerate(self.files, 1)}
        real = relay_module._write_all
        monkeypatch.setattr(relay_module, "_write_all", lambda fd, data: real(own[fd], data))
        self.relay = Relay({**JOB, **job}, self.events.put)
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, str(self.relay.program_end.fileno())],
            pass_fds=[self.relay.program_end.fileno()],
            stdin=stdin,
            **self.relay.popen_options(),
        )
        self.relay.start()

    def end(self):
        self.process.wait()
        self.relay.close()
        return self.all()

    def all(self):
        events = []
        while not self.events.empty():
            events.append(self.events.get())
        return events

    def texts(self):
        return [path.read_text() for path in self.files]


def lines_of(events):
    return [line for event in events if event["event"] == "output" for line in event["lines"]]


def reports_of(events):
    return [r for event in events if event["event"] == "report" for r in event["reports"]]


@pytest.fixture
def run(tmp_path, monkeypatch):
    return lambda program, **job: Run(tmp_path, monkeypatch, program, **job)


def test_lines_reach_the_driver_while_the_program_runs_and_the_files_have_the_bytes(run):
    go, goes = os.pipe()
    ran = run(
        "import os, sys\nprint('first', flush=True)\nos.read(0, 1)\nsys.stderr.write('half')\n",
        stdin=go,
    )
    first = ran.events.get(timeout=30)  # while the program still waits
    assert first == {"event": "output", "label": LABEL, "lines": ["first"], "left_out": 0}
    os.write(goes, b"-")
    assert lines_of(ran.end()) == ["half"]
    assert ran.texts() == ["first\n", "half"]


def test_reports_of_a_killed_program_survive(run):
    program = REPORT + (
        "import os\nfor step in range(200): reports.report({'loss': step}, step)\n"
        "os.write(2, b'the end\\n')\nos.kill(os.getpid(), 9)\n"
    )
    ran = run(program)
    ran.process.wait()
    ran.relay.flush()  # as a supervisor does before it reports that a program ended
    events = ran.all()
    assert [report["values"]["loss"] for report in reports_of(events)] == list(range(200))
    assert all(report["ago"] >= 0 for report in reports_of(events))
    assert "the end" in lines_of(events)
    ran.end()


def test_endless_output_is_truncated_with_a_count(run, monkeypatch):
    monkeypatch.setattr(output_lines, "_LINES_PER_S", 0.0)
    count = 5000
    ran = run(f"for n in range({count}): print('line', n)")
    events = ran.end()
    shown = lines_of(events)
    assert shown == [f"line {n}" for n in range(500)]
    left_out = sum(event["left_out"] for event in events)
    assert len(shown) + left_out == count
    assert ran.texts()[0].count("\n") == count  # the executor's file has all lines


def test_endless_reports_reach_the_driver_in_bounded_messages(run):
    count = 20_000
    program = REPORT + (
        f"for step in range({count}): reports.report({{'loss': step, 'n' * 3000: 1}}, step)\n"
        "reports.flush()\n"
    )
    events = run(program, captures="").end()
    found = reports_of(events)
    assert len(found) + sum(event["left_out"] for event in events) == count
    assert found[-1]["step"] == count - 1
    assert max(len(event["reports"]) for event in events) <= 200
    assert max(len(str(event)) for event in events) < 1 << 19


def test_output_that_is_not_shown_is_not_captured(run):
    ran = run("pass", captures="")
    assert ran.relay.popen_options() == {}
    assert ran.end() == []


def test_lines_stay_local_on_the_drivers_terminal(run):
    ran = run("print('a\\nb')", captures="here")
    assert ran.end() == []
    assert ran.texts()[0] == f"{LABEL} a\n{LABEL} b\n"


def test_a_lost_driver_does_not_stop_the_node(tmp_path, monkeypatch):
    asked = threading.Event()

    def gone(event):
        asked.set()
        raise ConnectionError("the driver is gone")

    go, goes = os.pipe()
    program = "import os\nos.read(0, 1)\nprint('kept', flush=True)\nos.read(0, 1)\nprint('too')"
    ran = Run(tmp_path, monkeypatch, program, stdin=go)
    ran.relay._send = gone
    os.write(goes, b"-")
    assert asked.wait(30)
    os.write(goes, b"-")
    ran.end()
    assert ran.texts()[0] == "kept\ntoo\n"


def test_a_flush_of_an_ended_relay_returns(run):
    ran = run("pass")
    ran.end()
    ended = threading.Event()
    threading.Thread(target=lambda: (ran.relay.flush(), ended.set()), daemon=True).start()
    assert ended.wait(60)


def test_a_progress_bar_is_shown_in_its_final_state():
    lines = Lines()
    assert lines.add(b"  1%\r  2%\r") == ["  2%"]
    assert lines.add(b"  3%\r 99%") == ["  3%"]
    assert lines.add(b"\r100%\r\nnext\r\n") == ["100%", "next"]
    assert lines.add(b"\n") == [""]
    assert lines.end() == []


def test_long_lines_are_truncated_and_invalid_bytes_replaced():
    lines = Lines()
    assert lines.add(b"a\xffb\n") == ["a\ufffdb"]
    (long,) = lines.add(b"x" * 10_000)
    assert len(long) < 2100 and long.endswith(" ...")
    assert lines.add(b"\xc3") == []
    assert lines.add(b"\xbc\n") == ["ü"]  # a character split between two reads


def test_the_line_limit_recovers_with_time():
    now = [0.0]
    limit = Limit(lambda: now[0])
    assert len(limit.within(["x"] * 600)) == 500
    assert limit.within(["x"]) == []
    now[0] = 1.0
    assert len(limit.within(["x"] * 600)) == 50
