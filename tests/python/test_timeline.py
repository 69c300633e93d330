"""Timelines of several processes: their contents, and how they are merged onto one clock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from hearth.native import _core
from hearth.tools import timeline

RANK = """
import json, os, sys, time
import numpy as np
from hearth.native._core import Group, Member, Queue, Request
from hearth.native.timeline import span
port, token, rank, world = json.loads(sys.argv[1])
member = Member(host="127.0.0.1", port=port, token=token, rank=rank, world=world,
                host_name=f"host{rank}")
member.reserve("{}")
group = Group.connect(member, shared_memory=False, timeout_s=120)
queue = Queue(group, timeout_s=120)

def run(name, count):
    request = Request("all_reduce", np.ones(count, np.float32))
    request.name = name
    return queue.submit(request)

with span("forward"):
    handles = [run(f"layer{i}.weight", 1 << 16) for i in range(3)]
for handle in handles:
    handle.wait(120)
"""


def run_ranks(folder, program, world=2):
    """Runs the program as ranks of one group; returns the processes after they have ended."""
    token = _core.new_token()
    coordinator = _core.Coordinator(world=world, token=token)
    environment = {**os.environ, "HEARTH_TIMELINE": str(folder)}
    processes = []
    for rank in range(world):
        given = json.dumps([coordinator.port(), token, rank, world])
        command = [sys.executable, "-c", RANK + program, given]
        processes.append(subprocess.Popen(command, env=environment))
    for process in processes:
        process.wait(120)
    coordinator.close()
    return processes


def spans(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def check_format(trace):
    """Checks the requirements of the Trace Event Format's JSON object format."""
    assert isinstance(trace["traceEvents"], list)
    named = set()
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["ph"] in ("X", "M")
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            kinds = {"process_name", "process_sort_index", "thread_name"}
            assert event["name"] in kinds, event
            named.add((event["name"], event["pid"]))
        else:
            assert isinstance(event["cat"], str)
            assert event["ts"] >= 0
            assert event["dur"] >= 0
    for process in {event["pid"] for event in spans(trace)}:
        assert ("process_name", process) in named


def test_two_ranks_show_their_tensors_on_one_clock(tmp_path, capsys):
    assert [process.returncode for process in run_ranks(tmp_path, "")] == [0, 0]
    assert timeline.main([str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "2 processes on 1 host." in said
    trace = json.loads((tmp_path / "timeline.json").read_text())
    check_format(trace)
    named = [event for event in trace["traceEvents"] if event["name"] == "process_name"]
    names = {event["pid"]: event["args"]["name"] for event in named}
    assert names == {1: "rank 0 on host host0", 2: "rank 1 on host host1"}
    for i in range(3):
        first, second = (e for e in spans(trace) if e["name"] == f"all-reduce 'layer{i}.weight'")
        for event in (first, second):
            assert event["args"]["bytes"] == 4 << 16
            assert event["args"]["type"] == "float32"
            assert event["args"]["transport"] == "tcp"
            assert event["args"]["queue_us"] >= 0
        assert first["args"]["step"] == second["args"]["step"]
        # They overlap: neither ends before the other begins.
        assert first["ts"] <= second["ts"] + second["dur"]
        assert second["ts"] <= first["ts"] + first["dur"]
    forward = [event for event in spans(trace) if event["name"] == "forward"]
    assert {event["pid"] for event in forward} == {1, 2}


def test_a_killed_rank_leaves_its_timeline(tmp_path):
    killed = f"\nif rank == 1: os.kill(os.getpid(), {int(signal.SIGKILL)})\ngroup.barrier(60)"
    processes = run_ranks(tmp_path, killed)
    assert processes[1].returncode == -signal.SIGKILL
    assert timeline.main([str(tmp_path)]) == 0
    trace = json.loads((tmp_path / "timeline.json").read_text())
    check_format(trace)
    reduced = [e for e in spans(trace) if e["pid"] == 2 and e["name"].startswith("all-reduce")]
    assert len(reduced) == 3
    failed = [event for event in spans(trace) if "error" in event["args"]]
    assert [event["pid"] for event in failed] == [1]
    # The waiting operation or the rendezvous reports it, whichever notices first.
    assert "rank 1 on host host1" in failed[0]["args"]["error"]


def write(folder, rank, host, offset_us, steps, wall_error_us=0):
    """Writes a rank's file; its clock is `offset_us` ahead; `steps` are (number, begin, end)."""
    place = {"pid": 100 + rank, "tid": 7}
    name = f"rank {rank} on host {host}"
    clock = {
        "host": host,
        "boot": host,
        "monotonic_us": 1_000_000 + offset_us,
        "wall_us": 9_000_000_000 + wall_error_us,
    }
    events = [
        {"ph": "M", **place, "name": "hearth_clock", "args": clock},
        {"ph": "M", **place, "name": "process_name", "args": {"name": name}},
    ]
    for step, begin, end in steps:
        details = {"group": "g", "step": step}
        time = {"ts": begin + offset_us, "dur": end - begin}
        events.append(
            {"ph": "X", **place, **time, "cat": "collective", "name": "all-reduce", "args": details}
        )
    lines = "".join(json.dumps(event) + ",\n" for event in events)
    (folder / f"{host}-{rank}.trace.json").write_text("[\n" + lines)


def test_clocks_of_hosts_are_aligned_by_common_operations(tmp_path):
    # Rank 1 is 300 us late at step 1, and rank 0 is 200 us late at step 2.
    write(tmp_path, 0, "a", 0, [(1, 1000, 1510), (2, 2200, 2260)])
    write(tmp_path, 1, "b", 777_000, [(1, 1300, 1505), (2, 2000, 2255)], wall_error_us=5000)
    processes = timeline.read_all(tmp_path)
    clock = timeline.clocks(processes)["b"]
    assert abs(clock.shift_us + 777_000) <= clock.error_us
    assert clock.error_us < 150
    trace = timeline.merged(processes, timeline.clocks(processes))
    check_format(trace)
    begins = {(e["pid"], e["args"]["step"]): e["ts"] for e in spans(trace)}
    assert begins[1, 1] == 0
    assert abs(begins[2, 1] - 300) <= clock.error_us
    assert "aligned to" in timeline.describe(processes, timeline.clocks(processes))


def test_hosts_without_common_operations_use_wall_clocks(tmp_path):
    write(tmp_path, 0, "a", 0, [(1, 1000, 1100)])
    write(tmp_path, 1, "b", 50_000, [(2, 1500, 1600)])
    processes = timeline.read_all(tmp_path)
    by = timeline.clocks(processes)
    assert by["b"] == timeline.Clock(-50_000, None)
    assert "may differ by milliseconds" in timeline.describe(processes, by)


def test_ranks_are_sorted_and_a_partial_line_is_ignored(tmp_path):
    for rank in (10, 9, 2):
        write(tmp_path, rank, "a", 0, [(1, 1000, 1100)])
    with open(tmp_path / "a-2.trace.json", "a", encoding="utf-8") as file:
        file.write('{"ph":"X","pid":102,"ti')
    processes = timeline.read_all(tmp_path)
    assert [process.name for process in processes] == [
        f"rank {rank} on host a" for rank in (2, 9, 10)
    ]
    assert len(processes[0].events) == 1


@pytest.mark.parametrize("text", [None, "", "[\n", '{"traceEvents": []}'])
def test_a_folder_without_timelines_is_a_one_line_error(tmp_path, capsys, text):
    if text is not None:
        (tmp_path / "x.trace.json").write_text(text)
    assert timeline.main([str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert len(said.strip().splitlines()) == 1
    assert str(tmp_path) in said


def test_it_is_a_command_that_needs_no_native_program(tmp_path):
    command = [sys.executable, "-m", "hearth.cli", "timeline", str(tmp_path)]
    environment = {**os.environ, "HEARTH_NATIVE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(f"hearth timeline: {tmp_path} has no timelines")


CLOCK = (
    '{"ph":"M","pid":1,"tid":0,"name":"hearth_clock","args":'
    '{"wall_us":5,"monotonic_us":1,"boot":"b","host":"h"}},\n'
)
ALL_REDUCE = '{"ph":"X","ts":1,"dur":1,"cat":"collective","name":"all-reduce",'
GARBLED = [
    '{"ph":"X","ts":"1","dur":1,"name":"x"},',
    '{"ph":"X","dur":1,"name":"x"},',
    '{"ph":"X","ts":Infinity,"dur":1,"name":"x"},',
    '{"ph":"X","ts":1' + "0" * 400 + ',"dur":1,"name":"x"},',
    '{"ph":"X","ts":1,"dur":1,"name":7,"cat":"collective","args":{"group":"","step":1}},',
    ALL_REDUCE + '"args":{"step":1}},',
    ALL_REDUCE + '"args":{"group":[],"step":1}},',
    ALL_REDUCE + '"args":null},',
    '{"a":' * 100000 + "},",
]


@pytest.mark.parametrize("line", GARBLED, ids=range(len(GARBLED)))
def test_an_invalid_line_is_ignored(tmp_path, line):
    sound = ALL_REDUCE + '"args":{"group":"","step":1}},\n'
    (tmp_path / "a.trace.json").write_text(f"[\n{CLOCK}{sound}{line}\n{sound}")
    assert timeline.main([str(tmp_path)]) == 0
    trace = json.loads((tmp_path / "timeline.json").read_text())
    assert len(spans(trace)) == 2


@pytest.mark.parametrize("name", ["5", '"\u00b2"', '"rank \u0663"'])
def test_a_process_may_have_any_name(tmp_path, name):
    named = f'{{"ph":"M","name":"process_name","args":{{"name":{name}}}}},\n'
    for file in ("a", "b"):
        (tmp_path / f"{file}.trace.json").write_text(f"[\n{CLOCK}{named}", encoding="utf-8")
    assert timeline.main([str(tmp_path)]) == 0
