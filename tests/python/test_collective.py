"""Ranks in separate processes: every operation on arrays, and the effects of a killed rank."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from hearth.native import _core

START = """
import json, sys
import numpy as np
from hearth import HearthError
from hearth.native._core import Group, Member, Queue, Request
port, token, rank, world, shared, case = json.loads(sys.argv[1])
member = Member(host="127.0.0.1", port=port, token=token, rank=rank, world=world,
                host_name=f"host{rank}")
member.reserve("{}")
group = Group.connect(member, shared_memory=shared, timeout_s=120)

def request(operation, output=None, input=None, **how):
    asked = Request(operation, output, input)
    for key, value in how.items():
        setattr(asked, key, value)
    return asked
"""

EVERY_OPERATION = """
own = np.arange(6, dtype=np.float32) + rank
ranks = np.arange(world)
total = np.arange(6) * world + ranks.sum()
queue = Queue(group, timeout_s=120)

def run(*asked, **how):
    handle = queue.submit(request(*asked, **how))
    handle.wait(120)
    assert handle.done()

for op, expected in [("sum", total), ("mean", total / world), ("min", np.arange(6)),
                     ("max", np.arange(6) + world - 1)]:
    output = np.empty(6, np.float32)
    run("all_reduce", output, own, op=op, name="gradient")
    assert np.array_equal(output, expected.astype(np.float32)), (op, output)
output = np.empty(6, np.float32)
run("all_reduce", output, own, wire="bfloat16")
assert np.array_equal(output, total), output
for dtype in (np.float16, np.float64, np.int32, np.int64, np.uint8):
    output = own.astype(dtype)
    run("all_reduce", output)
    assert np.array_equal(output, total.astype(dtype)), (dtype, output)
flags = np.array([rank == 0, False])
run("all_reduce", flags, op="max")
assert flags.tolist() == [True, False]

part = np.empty(6 // world, np.float32)
run("reduce_scatter", part, own)
assert np.array_equal(part, np.split(total, world)[rank]), part
everything = np.empty(2 * world, np.int64)
run("all_gather", everything, np.full(2, rank))
assert np.array_equal(everything, np.repeat(ranks, 2)), everything
ragged = np.empty(ranks.sum(), np.int64)
run("all_gather", ragged, np.full(rank, rank), counts=ranks.tolist())
assert np.array_equal(ragged, np.repeat(ranks, ranks)), ragged
blocks = np.empty(world, np.int64)
run("all_to_all", blocks, ranks * 10 + rank)
assert np.array_equal(blocks, rank * 10 + ranks), blocks
message = np.full(3, rank)
run("broadcast", message, peer=world - 1)
assert message.tolist() == [world - 1] * 3
if rank == 0:
    run("send", input=own, peer=1)
elif rank == 1:
    received = np.empty(6, np.float32)
    run("receive", received, peer=0)
    assert np.array_equal(received, own - 1)
run("barrier")

many = [np.full(1000, i + rank) for i in range(20)]
handles = [queue.submit(request("all_reduce", array)) for array in many]
handles.append(queue.submit(request("all_reduce", np.ones(5))))  # the only reference
for handle in handles:
    handle.wait(120)
for i, array in enumerate(many):
    assert np.array_equal(array, np.full(1000, i * world + ranks.sum()))

def refused(*asked, **how):
    try:
        queue.submit(request(*asked, **how))
    except (ValueError, TypeError) as error:
        return str(error)
    raise SystemExit("accepted")

assert "unknown operation 'scan'" in refused("scan", own)
assert "needs an array as `output`" in refused("all_reduce")
assert "float32 to one of int64" in refused("all_reduce", np.empty(6, np.int64), own)
assert "not 6 and 5" in refused("all_reduce", np.empty(5, np.float32), own)
assert "arrays of complex64 cannot be exchanged" in refused("all_reduce", np.empty(5, np.complex64))
assert "unknown reduction 'product'" in refused("all_reduce", own, op="product")
assert "incompatible" in refused("all_reduce", np.empty((6, 6), np.float32)[:, 1])
queue.close()
queue.close()
try:
    queue.submit(request("barrier"))
    raise SystemExit("accepted")
except HearthError as error:
    assert "closed" in str(error)

half = group.split(-1 if rank == world - 1 else 0, 120)
assert (half is None) == (rank == world - 1)
if half is not None:
    value = np.array([rank])
    half.run(request("all_reduce", value), 120)
    assert value[0] == ranks[:-1].sum() and half.world == world - 1
group.run(request("barrier"), 120)
member.done()
print(json.dumps("done"), flush=True)
"""

UNTIL_KILLED = """
import time
big = np.zeros(6 << 20, np.float32)
last = world - 1
requests = {
    "all_reduce": request("all_reduce", big),
    "all_reduce in 16 bits": request("all_reduce", big, wire="bfloat16"),
    "reduce_scatter": request("reduce_scatter", big),
    "all_gather": request("all_gather", big),
    "all_to_all": request("all_to_all", big),
    "broadcast": request("broadcast", big, peer=last),
    "send": request("send", None, big, peer=last),
    "receive": request("receive", big, peer=last),
    "barrier": request("barrier"),
}
group.barrier(120)
print(json.dumps("ready"), flush=True)
if rank == last:
    time.sleep(600)
queue = Queue(group, timeout_s=300)
try:
    queue.submit(requests[case]).wait(300)
    queue.submit(request("barrier")).wait(300)
except (ConnectionError, HearthError) as error:
    print(json.dumps(str(error)), flush=True)
"""

DISAGREEMENT = """
count = 5 if rank == 1 else 4
try:
    group.run(request("all_reduce", np.zeros(count), name="conv1"), 300)
    group.barrier(300)
except (ValueError, ConnectionError, HearthError) as error:
    print(json.dumps(str(error)), flush=True)
"""


class Ranks:
    """Processes of one group that run the same program."""

    def __init__(self, program: str, *, world: int, shared: bool, case: str = "") -> None:
        token = _core.new_token()
        self.coordinator = _core.Coordinator(world=world, token=token)
        self.processes = []
        for rank in range(world):
            given = json.dumps([self.coordinator.port(), token, rank, world, shared, case])
            command = [sys.executable, "-c", START + program, given]
            self.processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))

    def say(self, rank: int) -> str:
        """Reads a rank's next line; fails the test if the rank ended without printing one."""
        line = self.processes[rank].stdout.readline()
        assert line, f"rank {rank} ended with {self.processes[rank].wait(60)}"
        return json.loads(line)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(60)
            process.stdout.close()


@pytest.fixture
def ranks() -> Iterator[list[Ranks]]:
    """A list; groups in it are ended after the test."""
    started: list[Ranks] = []
    yield started
    for each in started:
        each.end()


@pytest.mark.parametrize("shared", [True, False])
def test_every_operation_works_on_arrays(ranks: list[Ranks], shared: bool) -> None:
    ranks.append(Ranks(EVERY_OPERATION, world=3, shared=shared))
    assert [ranks[0].say(rank) for rank in range(3)] == ["done"] * 3


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    "case",
    [
        "all_reduce",
        "all_reduce in 16 bits",
        "reduce_scatter",
        "all_gather",
        "all_to_all",
        "broadcast",
        "send",
        "receive",
        "barrier",
    ],
)
def test_a_killed_rank_ends_the_operation_of_the_others(
    ranks: list[Ranks], shared: bool, case: str
) -> None:
    pair = case in ("send", "receive")
    world = 2 if pair else 3
    ranks.append(Ranks(UNTIL_KILLED, world=world, shared=shared, case=case))
    assert [ranks[0].say(rank) for rank in range(world)] == ["ready"] * world
    ranks[0].processes[-1].kill()
    start = time.monotonic()
    errors = [ranks[0].say(rank) for rank in range(world - 1)]
    # A thousandth of the operation's time limit; normally it takes milliseconds.
    print(f"{case}: {(time.monotonic() - start) * 1e3:.0f} ms")
    assert time.monotonic() - start < 60
    # The first rank to notice names the killed one; others may name a rank that they wait for.
    last = world - 1
    assert any(f"rank {last}" in text and f"host{last}" in text for text in errors), errors


@pytest.mark.parametrize("shared", [True, False])
def test_a_mismatched_operation_names_both_ranks(ranks: list[Ranks], shared: bool) -> None:
    ranks.append(Ranks(DISAGREEMENT, world=3, shared=shared))
    errors = [ranks[0].say(rank) for rank in range(3)]
    both = [text for text in errors if "of 32 bytes" in text and "of 40 bytes" in text]
    assert both and all("'conv1'" in text and "rank" in text for text in both), errors
