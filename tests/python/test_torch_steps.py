"""Ranks of "hearth" that disagree in shapes, types or steps, or leave and rejoin."""

from __future__ import annotations

import socket

import pytest
from torch_ranks import Ranks, torch_ranks

pytestmark = pytest.mark.torch
ranks = torch_ranks

DISAGREEMENTS = """
def tensor(*kinds):
    shape, kind = kinds[rank]
    return torch.ones(shape, dtype=kind)

wide, tall = ((2, 3), torch.float32), ((3, 2), torch.float32)
short, half = ((6,), torch.int16), ((6,), torch.float16)
flat = ((6,), torch.float32)
Op = dist.ReduceOp

def between(group):
    if rank == 0:
        dist.send(tensor(wide, tall), 1, group=group)
    else:
        dist.recv(tensor(wide, tall), 0, group=group)

def scatter(group):
    parts = [torch.ones(2, 3)] * 2 if rank == 0 else None
    dist.scatter(tensor(wide, tall), parts, src=0, group=group)

def reduced(group):
    value = torch.ones(6)
    dist.reduce(value, 0, group=group) if rank == 0 else dist.all_reduce(value, group=group)

CASES = {
    "all_reduce": lambda g: dist.all_reduce(tensor(wide, tall), group=g),
    "all_reduce of widened": lambda g: dist.all_reduce(
        tensor(short, ((6,), torch.int32)), group=g),
    "broadcast": lambda g: dist.broadcast(tensor(wide, tall), 0, group=g),
    "broadcast of bytes": lambda g: dist.broadcast(tensor(short, half), 0, group=g),
    "all_gather": lambda g: dist.all_gather(
        [torch.ones_like(tensor(wide, tall)) for _ in range(2)], tensor(wide, tall), group=g),
    "all_gather_into_tensor": lambda g: dist.all_gather_into_tensor(
        torch.ones(12), tensor(flat, (6, torch.int32)).view(torch.float32)
        if rank else tensor(wide, tall), group=g),
    "reduce_scatter": lambda g: dist.reduce_scatter_tensor(
        tensor(wide, tall), tensor(((4, 3), torch.float32), ((6, 2), torch.float32)), group=g),
    "all_to_all": lambda g: dist.all_to_all_single(
        tensor(wide, tall), tensor(wide, ((2, 3), torch.int32)).view(torch.float32)
        if rank == 0 else tensor(wide, tall).reshape(2, 3).t(), group=g),
    "send": between,
    "scatter": scatter,
    "reduce": reduced,
    "product": lambda g: dist.all_reduce(
        tensor(flat, flat).int(), Op.PRODUCT if rank else Op.BOR, group=g),
}
for name, call in CASES.items():
    group = dist.new_group([0, 1])
    try:
        call(group)
        if name != "send":  # which is only reported to the receiver
            dist.barrier(group=group)
        say([name, ""])
    except Exception as error:
        say([name, f"{type(error).__name__}: {error}"])
"""


def test_other_shapes_types_and_operations_of_as_many_bytes_are_reported(ranks):
    ranks.append(Ranks(DISAGREEMENTS, seconds=15))
    for said in [
        ("[2, 3]", "[3, 2]"),
        ("int16[6]", "int32[6]"),
        ("[2, 3]", "[3, 2]"),
        ("int16[6]", "float16[6]"),
        ("[2, 3]", "[3, 2]"),
        ("[2, 3]", "[6]"),
        ("[2, 3]", "[3, 2]"),
        ("[2, 3]", "[3, 2]"),
        ("[2, 3]", "[3, 2]"),
        ("[2, 3]", "[3, 2]"),
        ("for rank 0", "(float32[6], sum)"),
        ("by PRODUCT", "by BOR"),
    ]:
        replies = [ranks[0].say(rank) for rank in range(2)]
        assert replies[0][0] == replies[1][0]
        texts = [text for _, text in replies]
        assert any(all(part in text for part in said) for text in texts), (said, replies)


SKIPPED = """
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(1)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
try:
    for step in range(3):
        loss = model(torch.full((2, 4), float(rank))).sum()
        if case and rank == 0 and step == 1:
            continue  # as where a loss is not finite
        loss.backward()
    say("done")
except Exception as error:
    say(f"{type(error).__name__}: {error}")
"""


@pytest.mark.parametrize("skips", [True, False])
def test_a_backward_that_one_rank_leaves_out_is_an_error_of_its_next_one(ranks, skips):
    ranks.append(Ranks(SKIPPED, case="skips" if skips else ""))
    replies = [ranks[0].say(rank) for rank in range(2)]
    if skips:
        assert any("step 2" in text and "step 3" in text for text in replies), replies
    else:
        assert replies == ["done"] * 2


SCALED = """
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(1)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(4):
    optimizer.zero_grad()
    rows = torch.full((2, 4), 0.1 * rank + step)
    if rank == 0 and step == 1:
        rows[0, 0] = float("inf")
    scaler.scale(model(rows).mean()).backward()
    scaler.step(optimizer)
    scaler.update()
say([scaler.get_scale(), [p.detach().flatten().tolist() for p in model.parameters()]])
"""


def test_ranks_of_a_grad_scaler_leave_out_the_same_steps(ranks):
    ranks.append(Ranks(SCALED))
    first, second = [ranks[0].say(rank) for rank in range(2)]
    assert first == second and first[0] == 512.0


APART = """
from torch.distributed.algorithms import Join
from torch.nn.parallel import DistributedDataParallel

def model(group=None):
    return DistributedDataParallel(torch.nn.Linear(4, 1), process_group=group)

def train(model):
    model(torch.ones(2, 4)).sum().backward()

alone = [dist.new_group([r]) for r in range(world)]
shared = model()
if rank == 0:
    train(model(alone[0]))  # a model of this rank only
train(shared)
with Join([shared]):
    for _ in range(1 + rank):
        train(shared)
train(shared)
if rank == 0:
    shared(torch.ones(2, 4))  # a step that fails before its backward
dist.destroy_process_group()
dist.init_process_group("hearth")
train(model())
say("done")
"""


def test_steps_are_those_of_a_models_group(ranks):
    ranks.append(Ranks(APART))
    assert [ranks[0].say(rank) for rank in range(2)] == ["done"] * 2


AGAIN = """
for name in ("hearth", "gloo", "gloo", "hearth"):
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total.item() == world
    dist.destroy_process_group()
    dist.init_process_group(name)
dist.barrier()
say("done")
"""


def test_groups_are_created_and_destroyed_while_rank_0_serves_the_store(ranks):
    with socket.socket() as kept:  # reserves the port, where a server may still listen
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        ranks.append(Ranks(AGAIN, world=3, port=kept.getsockname()[1]))
        assert [ranks[0].say(rank) for rank in range(3)] == ["done"] * 3


FORKS = """
import signal

def exchange():
    total, got = torch.ones(1), torch.empty(1)
    dist.all_reduce(total, async_op=True).wait()
    sent = dist.isend(total, 1 - rank)
    dist.recv(got, 1 - rank)
    sent.wait()
    assert total.item() == got.item() == world

exchange()
for how in ("exits", "ends its group", "calls"):
    if (child := os.fork()) == 0:
        signal.alarm(60)  # where it would wait for ever
        if how == "ends its group":
            dist.destroy_process_group()
        if how == "calls":
            try:
                dist.all_reduce(torch.ones(1))
            except RuntimeError as error:
                sys.exit(7 if "forked" in str(error) else 1)
        sys.exit(7)
    status = os.waitpid(child, 0)[1]
    exchange()
    say([how, os.waitstatus_to_exitcode(status)])
"""


@pytest.mark.parametrize("shared", [True, False])
def test_a_forked_child_ends_and_leaves_the_group_alone(ranks, shared):
    ranks.append(Ranks(FORKS, shared=shared))
    for how in ("exits", "ends its group", "calls"):
        assert [ranks[0].say(rank) for rank in range(2)] == [[how, 7]] * 2
