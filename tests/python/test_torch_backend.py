"""init_process_group("hearth"): PyTorch's operations and trainings that use it."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest
from torch_ranks import Ranks, torch_ranks

pytestmark = pytest.mark.torch
ranks = torch_ranks


OPERATIONS = """
everyone = range(world)

def equal(found, expected):
    expected = torch.as_tensor(expected).to(found.dtype)
    assert torch.equal(found, expected), (found, expected)

KINDS = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int16,
         torch.int32, torch.int64, torch.uint8, torch.complex64, torch.complex128]
for kind in KINDS:
    own = (torch.arange(5) + rank).to(kind)
    total = own.clone()
    dist.all_reduce(total)
    equal(total, torch.arange(5) * world + sum(everyone))
    parts = [torch.empty(5, dtype=kind) for _ in everyone]
    dist.all_gather(parts, own)
    for other in everyone:
        equal(parts[other], torch.arange(5) + other)
    shown = own.clone()
    dist.broadcast(shown, world - 1)
    equal(shown, torch.arange(5) + world - 1)
flags = torch.tensor([rank == 0, False])
dist.all_reduce(flags, op=dist.ReduceOp.MAX)
equal(flags, [True, False])

Op = dist.ReduceOp
for op, expected in [(Op.AVG, (world + 1) / 2), (Op.MIN, 1), (Op.MAX, world), (Op.PRODUCT, 6)]:
    value = torch.tensor([rank + 1.0])
    dist.all_reduce(value, op=op)
    equal(value, [expected])
bits = torch.tensor([1 << rank])
dist.all_reduce(bits, op=Op.BOR)
equal(bits, [(1 << world) - 1])

across = torch.arange(6.0).view(2, 3).t()  # not contiguous
dist.all_reduce(across)
equal(across, torch.arange(6.0).view(2, 3).t() * world)
number = torch.tensor(float(rank))
dist.all_reduce(number)
equal(number, sum(everyone))
dist.all_reduce(torch.empty(0))

value = torch.tensor([1.0])
dist.reduce(value, 1)
equal(value, [world] if rank == 1 else [1])
part = torch.empty(2)
dist.reduce_scatter_tensor(part, torch.arange(2.0 * world))
equal(part, torch.arange(2.0 * world)[2 * rank : 2 * rank + 2] * world)
dist.reduce_scatter(part, list(torch.arange(2.0 * world).split(2)), op=Op.AVG)
equal(part, torch.arange(2.0 * world)[2 * rank : 2 * rank + 2])
small = torch.empty(2, dtype=torch.int8)
dist.reduce_scatter_tensor(small, torch.arange(2 * world, dtype=torch.int8))
equal(small, torch.arange(2 * world)[2 * rank : 2 * rank + 2] * world)
whole = torch.empty(2 * world)
dist.all_gather_into_tensor(whole, torch.full((2,), float(rank)))
equal(whole, [float(r) for r in everyone for _ in range(2)])

blocks = torch.empty(world)
dist.all_to_all_single(blocks, torch.arange(float(world)) + 10 * rank)
equal(blocks, [10.0 * r + rank for r in everyone])
sizes = [r + 1 for r in everyone]  # rank r gets r + 1 elements of each
uneven = torch.empty((rank + 1) * world, dtype=torch.int16)
dist.all_to_all_single(uneven, torch.full((sum(sizes),), rank, dtype=torch.int16),
                       [rank + 1] * world, sizes)
equal(uneven, [r for r in everyone for _ in range(rank + 1)])
given = [torch.full((200_000,), 10.0 * rank + r) for r in everyone]
taken = [torch.empty(200_000) for _ in everyone]
dist.all_to_all(taken, given)
for other in everyone:
    equal(taken[other], torch.full((200_000,), 10.0 * other + rank))
found = [torch.empty(2) for _ in everyone] if rank == 1 else None
dist.gather(torch.full((2,), float(rank)), found, dst=1)
assert rank != 1 or [part[0].item() for part in found] == list(everyone)
own = torch.empty(2)
dist.scatter(own, [torch.full((2,), float(r)) for r in everyone] if rank == 0 else None, src=0)
equal(own, [float(rank)] * 2)
objects = [None] * world
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": r} for r in everyone]

# All ranks send before any receives, more than the buffers hold.
message, got = torch.full((1 << 20,), float(rank)), torch.empty(1 << 20)
after, before = (rank + 1) % world, (rank - 1) % world
for _ in range(2):
    operations = [dist.P2POp(dist.isend, message, after), dist.P2POp(dist.irecv, got, before)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    equal(got, torch.full((1 << 20,), float(before)))

many = [torch.full((1000,), float(i + rank)) for i in range(20)]
works = [dist.all_reduce(tensor, async_op=True) for tensor in many]
futures = [work.get_future() for work in works[::2]]
for work in reversed(works):
    work.wait()
for i, tensor in enumerate(many):
    equal(tensor, torch.full((1000,), float(i * world + sum(everyone))))
for future, tensor in zip(futures, many[::2]):
    assert future.wait()[0] is tensor or torch.equal(future.value()[0], tensor)

half = dist.new_group(list(range(world - 1)))
if rank < world - 1:
    value = torch.tensor([rank])
    dist.all_reduce(value, group=half)
    equal(value, [sum(range(world - 1))])
dist.barrier()

def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except (ValueError, RuntimeError) as error:
        return str(error)
    raise SystemExit(f"accepted: {arguments}")

assert "float8" in refused(dist.all_reduce, torch.zeros(2).to(torch.float8_e5m2))
assert "not PRODUCT" in refused(dist.reduce_scatter_tensor, torch.empty(1), torch.ones(world),
                                op=Op.PRODUCT)
dist.barrier()
dist.destroy_process_group()
say("done")
"""


@pytest.mark.parametrize("shared", [True, False])
def test_every_operation_of_torch_distributed(ranks, shared):
    ranks.append(Ranks(OPERATIONS, world=3, shared=shared))
    assert [ranks[0].say(rank) for rank in range(3)] == ["done"] * 3


WRAPPERS = """
import shutil, tempfile
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel, RowwiseParallel, parallelize_module)
from torch.nn.parallel import DistributedDataParallel
import torch.distributed.checkpoint as checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict

def make():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(37, 42), torch.nn.ReLU(), torch.nn.Linear(42, 5))

def train(model, rows, steps=4):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    random = torch.Generator().manual_seed(5)
    for _ in range(steps):
        batch = torch.randn(world * 4, 37, generator=random)
        optimizer.zero_grad()
        model(batch[rows]).square().mean().backward()
        optimizer.step()
    return optimizer

alone, own = make(), slice(rank * 4, rank * 4 + 4)
train(alone, slice(None))

def near(state):
    for name, value in alone.state_dict().items():
        assert torch.allclose(state[name], value, atol=1e-5), name

def same_everywhere(tensor):
    first = tensor.clone()
    dist.broadcast(first, 0)
    assert torch.equal(first, tensor)

plain = make()
train(DistributedDataParallel(plain, bucket_cap_mb=0.001), own)
near(plain.state_dict())
same_everywhere(plain[0].weight.detach())

hooked = make()
parallel = DistributedDataParallel(hooked)
parallel.register_comm_hook(None, bf16_compress_hook)
train(parallel, own)
same_everywhere(hooked[0].weight.detach())

uneven = DistributedDataParallel(make())
with Join([uneven]):
    train(uneven, own, steps=2 + rank)

mesh = init_device_mesh("cpu", (world,))
sharded = make()
if torch.__version__ >= (2, 7):
    for layer in [*sharded, sharded]:
        fully_shard(layer, mesh=mesh)
    optimizer = train(sharded, own)
else:  # FSDP2 does not compute on CPUs: checkpoints are those of DDP
    optimizer = train(DistributedDataParallel(sharded), own)

def whole(model):
    return {name: value.full_tensor() if hasattr(value, "full_tensor") else value
            for name, value in model.state_dict().items()}

near(whole(sharded))

model_state, optimizer_state = get_state_dict(sharded, optimizer)
folder = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folder)
checkpoint.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=folder[0])
with torch.no_grad():
    for parameter in sharded.parameters():
        parameter.zero_()
model_state, optimizer_state = get_state_dict(sharded, optimizer)
checkpoint.load({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=folder[0])
near(whole(sharded))
dist.barrier()
if rank == 0:
    shutil.rmtree(folder[0])

split = make()
batch = torch.ones(2, 37)
expected = split(batch).detach()
plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
assert torch.allclose(parallelize_module(split, mesh, plan)(batch), expected, atol=1e-5)
dist.destroy_process_group()
say("done")
"""


@pytest.mark.parametrize("shared", [True, False])
def test_ddp_fsdp2_join_checkpoints_and_tensor_parallel_train_as_one_process_would(ranks, shared):
    ranks.append(Ranks(WRAPPERS, shared=shared))
    assert [ranks[0].say(rank) for rank in range(2)] == ["done"] * 2


ALONE = """
import torch
import torch.distributed as dist

dist.init_process_group("hearth", store=dist.HashStore(), rank=0, world_size=1)
print(type(dist.group.WORLD._get_backend(torch.device("cpu"))).__module__)
"""


def test_a_checkout_has_the_entry_point_of_the_wheel():
    from hearth.torch.older_groups import backends_are_groups

    if backends_are_groups():
        pytest.skip("this PyTorch looks for no entry point")
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["hearth.torch.backend"], done.stderr


# PyTorch 2.6 to 2.11 use a whole group instead of a backend. Here float64 tensors stand for tensors
# of a GPU, and Gloo stands for NCCL.
OLDER_GROUPS = """
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel
from hearth.torch import older_groups

made = []

def gloo(options, gpu_options):
    made.append(options.timeout.total_seconds())
    own = dist.ProcessGroupGloo(dist.PrefixStore("gpu", options.store), options.group_rank,
                                options.group_size, options.timeout)
    return torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, own

older_groups._on_gpu = lambda tensor: tensor.dtype == torch.float64
older_groups._gpu_backend = gloo
dist.destroy_process_group()
dist.init_process_group("cpu:hearth,cuda:nccl", timeout=datetime.timedelta(seconds=100))
group = dist.group.WORLD
assert isinstance(group, older_groups.OlderGroup) and group.group_name == "0"
assert [device.type for device in group._device_types] == ["cpu", "cuda"]

for kind in (torch.float32, torch.float64):
    assert made == []
    own = torch.full((2,), rank + 1.0, dtype=kind)
    total = own.clone()
    dist.all_reduce(total)
    assert total.tolist() == [3, 3]
    whole = torch.empty(4, dtype=kind)
    dist.all_gather_into_tensor(whole, own)
    assert whole.tolist() == [1, 1, 2, 2]
    parts = [torch.empty(2, dtype=kind) for _ in range(2)]
    dist.all_gather(parts, own)
    assert torch.cat(parts).tolist() == [1, 1, 2, 2]
    part = torch.empty(2, dtype=kind)
    dist.reduce_scatter_tensor(part, whole)
    assert part.tolist() == [2 * (rank + 1)] * 2
    dist.all_to_all_single(part, own)
    assert part.tolist() == [1, 2]
    dist.gather(own, parts if rank == 1 else None, dst=1)
    dist.scatter(part, parts if rank == 1 else None, src=1)
    assert torch.equal(part, own)
    dist.broadcast(part, 1)
    assert part.tolist() == [2, 2]
    dist.send(own, 1) if rank == 0 else dist.recv(part, 0)
    assert part.tolist() == [2 - rank] * 2
    for hook in (None, fp16_compress_hook):
        model = DistributedDataParallel(torch.nn.Linear(2, 1, bias=False).to(kind))
        if hook is not None:
            model.register_comm_hook(None, hook)
        model(own).sum().backward()
        assert model.module.weight.grad.tolist() == [[1.5, 1.5]]
    assert made == ([100.0] if kind == torch.float64 else [])
    made.clear()
objects = [None] * world
dist.all_gather_object(objects, rank)
assert objects == [0, 1]
dist.barrier()
dist.destroy_process_group()
say("done")
"""


def test_a_group_of_older_pytorch_gives_each_device_its_backend(ranks):
    from hearth.torch.older_groups import backends_are_groups

    if not backends_are_groups():
        pytest.skip("this PyTorch has one group with a backend for each device")
    ranks.append(Ranks(OLDER_GROUPS))
    assert [ranks[0].say(rank) for rank in range(2)] == ["done"] * 2


class _Calls:
    """A fake backend that records calls."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *given: self.calls.append((name, given))


def test_methods_of_an_older_group_go_to_the_backend_of_the_tensors_device(monkeypatch):
    import torch
    from torch._C import _distributed_c10d as c10d

    from hearth.torch import older_groups
    from hearth.torch.backend import HearthBackend

    cpu, gpu = _Calls(), _Calls()
    options = types.SimpleNamespace(store=None, group_rank=0, group_size=2, group_id="7")
    group = older_groups.OlderGroup(cpu, options, None)
    configuration = "cpu:hearth,cuda:nccl"
    monkeypatch.setattr(group, "_configuration", lambda: configuration)
    monkeypatch.setattr(group, "_gpu_group", lambda: gpu)
    monkeypatch.setattr(older_groups, "_on_gpu", lambda tensor: tensor.device.type == "meta")
    own, on_meta = torch.ones(2), torch.ones(2, device="meta")
    for name, (called, kind) in older_groups._METHODS.items():
        assert hasattr(HearthBackend, called)
        getattr(group, name)([own])
        getattr(group, name)([[]], [on_meta])
        for calls, expected, count in ((cpu, called, 1), (gpu, name, 2)):
            [(found, given)] = calls.calls
            calls.calls.clear()
            assert found == expected
            assert len(given) == count + (kind is not None)
            assert kind is None or isinstance(given[-1], kind)

    named = c10d.BarrierOptions()
    named.device_ids = [1]
    group.barrier()
    group.barrier(opts=named)
    assert [len(calls.calls) for calls in (cpu, gpu)] == [1, 1]
    assert gpu.calls[0][1][0].device == torch.device("cuda", 1)
    assert [device.type for device in group._device_types] == ["cpu", "cuda"]
    configuration = "cpu:hearth"  # for the error message
    group.allreduce([on_meta])
    assert [len(calls.calls) for calls in (cpu, gpu)] == [2, 1]
    assert [device.type for device in group._device_types] == ["cpu"]
    assert group._get_backend(torch.device("cpu")) is cpu
