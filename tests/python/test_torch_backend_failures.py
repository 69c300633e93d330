"""init_process_group("hearth"): ranks that are killed or out of step, and leftovers."""

from __future__ import annotations

import time

import pytest
from torch_ranks import Ranks, torch_ranks

pytestmark = pytest.mark.torch
ranks = torch_ranks


UNTIL_KILLED = """
from torch.nn.parallel import DistributedDataParallel

parallel = DistributedDataParallel(torch.nn.Linear(512, 512))
dist.barrier()
say("ready")
if rank == world - 1:
    time.sleep(600)
try:
    if case == "all_reduce":
        dist.all_reduce(torch.zeros(1 << 20))
    elif case == "backward":
        parallel(torch.ones(1, 512)).sum().backward()
    elif case == "receive":
        dist.recv(torch.zeros(4), world - 1)
    else:
        dist.barrier()
except Exception as error:
    say(str(error))
"""


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("case", ["all_reduce", "backward", "barrier", "receive"])
def test_a_killed_rank_fails_the_operations_of_the_others(ranks, shared, case):
    world = 2 if case == "receive" else 3
    ranks.append(Ranks(UNTIL_KILLED, world=world, shared=shared, case=case))
    assert [ranks[0].say(rank) for rank in range(world)] == ["ready"] * world
    ranks[0].processes[-1].kill()
    start = time.monotonic()
    errors = [ranks[0].say(rank) for rank in range(world - 1)]
    print(f"{case}: {(time.monotonic() - start) * 1e3:.0f} ms")
    assert time.monotonic() - start < 60  # half of an operation's time limit
    assert any(f"rank {world - 1}" in text for text in errors), errors


DISAGREEMENT = """
try:
    if case == "sizes":
        dist.all_reduce(torch.zeros(4 + rank))
    elif case == "tags":
        dist.send(torch.zeros(2), 1, tag=3) if rank == 0 else dist.recv(torch.zeros(2), 0, tag=4)
        dist.barrier()
    elif rank == 0:
        dist.all_reduce(torch.zeros(4))
    else:
        time.sleep(600)
except Exception as error:
    say([type(error).__name__, str(error)])
"""


@pytest.mark.parametrize(
    ("case", "kind", "words"),
    [
        ("sizes", "InvalidArgumentError", ["16 bytes", "20 bytes", "rank"]),
        ("tags", "InvalidArgumentError", ["tag 3", "tag 4"]),
        ("late", "DeadlineExceededError", ["rank 1", "16 bytes"]),
    ],
)
def test_ranks_that_are_out_of_step_are_named(ranks, case, kind, words):
    ranks.append(Ranks(DISAGREEMENT, case=case, seconds=8 if case == "late" else 120))
    errors = ranks[0].say(1 if case == "tags" else 0)
    assert errors[0] == kind and all(word in errors[1] for word in words), errors


LEFTOVERS = """
def held():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

def few(most, until=time.monotonic() + 60):
    # Threads and connections of a destroyed group end a moment later.
    while any(now >= limit for now, limit in zip(held(), most)) and time.monotonic() < until:
        time.sleep(0.02)
    return held()

for number in range(12):
    total = torch.ones(3)
    dist.all_reduce(total)
    other = torch.empty(1)
    works = [dist.isend(torch.ones(1), 1 - rank), dist.irecv(other, 1 - rank)]
    for work in works:
        work.wait()
    dist.all_reduce(total, async_op=True).get_future().wait()
    dist.barrier()
    dist.destroy_process_group()
    if number == 3:
        time.sleep(1)
        before = held()
    start()
dist.destroy_process_group()
after = few([each + 4 for each in before])
say([before, after])
"""


def test_a_destroyed_process_group_leaks_no_resources(ranks):
    ranks.append(Ranks(LEFTOVERS))
    for rank in range(2):
        before, after = ranks[0].say(rank)
        # Eight groups were created in between; a leak of one descriptor each would be noticed.
        assert after[0] < before[0] + 4 and after[1] < before[1] + 4, (before, after)


def test_two_ranks_that_look_for_each_others_lanes_at_once_find_them(ranks):
    program = """
from hearth.torch.backend import HearthBackend
rendezvous_of = HearthBackend._rendezvous
def late(self, key):
    rendezvous = rendezvous_of(self, key)
    def publish(text):
        time.sleep(0.5)  # both ranks look for the other's address before they publish theirs
        rendezvous.publish(text)
    return dataclasses.replace(rendezvous, publish=publish)
HearthBackend._rendezvous = late
other = torch.empty(1)
works = [dist.isend(torch.tensor([float(rank)]), 1 - rank), dist.irecv(other, 1 - rank)]
for work in works:
    work.wait()
say(other.item())
"""
    ranks.append(Ranks("import dataclasses\n" + program, seconds=60))
    assert [ranks[0].say(rank) for rank in range(2)] == [1, 0]


def test_a_shared_key_is_not_left_in_the_store(ranks):
    program = """
from hearth.ranks.group import Rendezvous, Ranks as Connected
store = dist.TCPStore("127.0.0.1", port, world, is_master=False)
def meet(key):
    return Rendezvous(lambda text: store.set("own", text), lambda: store.get("own").decode(),
                   lambda: store.delete_key("own"), key=key)
if rank == 2:
    try:
        Connected(meet("5ec2e8"), 1, 2, 30)
        say("accepted")
    except PermissionError as error:
        say(store.get("own").decode())
    store.set("refused", "")
else:
    if rank == 1:
        store.get("refused")
    Connected(meet("5ec2e7"), rank, 2, 60).close()
    assert not store.check(["own"])
    say("met")
"""
    ranks.append(Ranks(program, world=3))
    shown = ranks[0].say(2)
    assert "5ec2e7" not in shown and shown.startswith("127.0.0.1 "), shown
    assert [ranks[0].say(rank) for rank in range(2)] == ["met"] * 2
