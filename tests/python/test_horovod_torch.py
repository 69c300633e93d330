"""hearth.horovod.torch: every operation against NumPy, and error messages."""

from __future__ import annotations

import pytest
from horovod_ranks import Ranks, horovod_ranks

pytestmark = pytest.mark.torch
ranks = horovod_ranks

START = """
import torch
torch.set_num_threads(1)
import hearth.horovod.torch as hvd
hvd.init()

def values(of, kind, shape):
    # Small whole numbers, which every type holds and adds up exactly.
    data = np.random.RandomState(of).randint(0, 4, shape)
    return torch.as_tensor(data).to(kind)

def as_numbers(tensor):
    return tensor.to(torch.float64).numpy() if tensor.is_floating_point() else tensor.numpy()
"""

# Each case varies: function, type, number of dimensions, name, process set, synchronous or not.
OPERATIONS = """
KINDS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
         torch.bfloat16, torch.float32, torch.float64]
pair = hvd.add_process_set([0, 2] if world == 3 else [1])
sets = [hvd.global_process_set, pair]
FOLDS = {hvd.Sum: sum, hvd.Min: lambda v: np.minimum.reduce(list(v)),
         hvd.Max: lambda v: np.maximum.reduce(list(v)),
         hvd.Product: lambda v: np.multiply.reduce(list(v))}
cases = 0
every_case = itertools.product(KINDS, (1, 2, 3), (0, 1), sets, (0, 1))
for number, (kind, dims, named, of, waits) in enumerate(every_case):
    if not of.included():
        continue
    cases += 1
    members, index = of.ranks, of.rank()
    name = f"case {number}" if named else None
    shape = (5, 3, 2)[:dims]
    own = values(rank, kind, shape)
    every = [as_numbers(values(r, kind, shape)) for r in members]
    more = {"name": name, "process_set": of}

    def run(function, *args, **options):
        call = getattr(hvd, function + ("" if waits else "_async"))
        return call(*args, **more, **options) if waits else hvd.synchronize(
            call(*args, **more, **options))

    for op, fold in FOLDS.items():
        found = run("allreduce", own, op=op)
        assert found.dtype == kind
        equal(as_numbers(found), fold(every), (op, kind))
    scaled = run("allreduce", own, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5)
    equal(as_numbers(scaled), sum(every), "scaled")
    mean = run("allreduce", own * 0 + 4)
    equal(as_numbers(mean), np.full(shape, 4), "mean")
    found = run("grouped_allreduce", [own, own + 1], op=hvd.Sum)
    equal(as_numbers(found[1]), sum(every) + len(members), "grouped")
    in_place = own.clone()
    if waits:
        hvd.allreduce_(in_place, op=hvd.Sum, **more)
    else:
        assert hvd.synchronize(hvd.allreduce_async_(in_place, op=hvd.Sum, **more)) is in_place
    equal(as_numbers(in_place), sum(every), "in place")
    several = [own.clone(), own + 1]
    if waits:
        given = hvd.grouped_allreduce_(several, op=hvd.Sum, **more)
    else:
        given = hvd.synchronize(hvd.grouped_allreduce_async_(several, op=hvd.Sum, **more))
    assert all(one is other for one, other in zip(given, several, strict=True))
    equal(as_numbers(several[1]), sum(every) + len(members), "grouped in place")

    uneven = values(rank, kind, (rank + 1, *shape[1:]))
    rows = [as_numbers(values(r, kind, (r + 1, *shape[1:]))) for r in members]
    equal(as_numbers(run("allgather", uneven)), np.concatenate(rows), "allgather")
    found = run("grouped_allgather", [uneven, own])
    equal(as_numbers(found[0]), np.concatenate(rows), "grouped allgather")
    equal(as_numbers(found[1]), np.concatenate(every), "grouped allgather")

    root = members[-1]
    equal(as_numbers(run("broadcast", own, root)), every[-1], "broadcast")
    copy = own.clone()
    if waits:
        hvd.broadcast_(copy, root, **more)
    else:
        assert hvd.synchronize(hvd.broadcast_async_(copy, root, **more)) is copy
    equal(as_numbers(copy), every[-1], "broadcast in place")

    # Member i sends i + j rows to member j.
    def sent(i):
        return [i + j for j in range(len(members))]
    def rows_of(i):
        return values(members[i], kind, (sum(sent(i)), *shape[1:]))
    found, counts = run("alltoall", rows_of(index), sent(index))
    parts = [np.split(as_numbers(rows_of(i)), np.cumsum(sent(i))[:-1])[index]
             for i in range(len(members))]
    equal(as_numbers(found), np.concatenate(parts), "alltoall")
    equal(counts, [i + index for i in range(len(members))], "received splits")

    whole = sum(every)
    mine = np.array_split(whole, len(members))[index]
    equal(as_numbers(run("reducescatter", own, op=hvd.Sum)), mine, "reducescatter")
    found = run("grouped_reducescatter", [own, own], op=hvd.Sum)
    equal(as_numbers(found[1]), mine, "grouped reducescatter")

for kind in [torch.bool, torch.complex64]:
    own = torch.tensor([rank == 0, True]).to(kind)
    every = [torch.tensor([r == 0, True]).to(kind).numpy() for r in range(world)]
    equal(hvd.allgather(own).numpy(), np.concatenate(every))
    equal(hvd.broadcast(own, 1).numpy(), every[1])
equal(hvd.allreduce(torch.tensor(float(rank)), op=hvd.Sum), sum(range(world)))
equal(hvd.allgather(torch.tensor(rank)), list(range(world)))
equal(hvd.allreduce(torch.zeros(0)), np.zeros(0))
equal(hvd.allgather(torch.zeros(0, 3)), np.zeros((0, 3)))
across = torch.arange(6.0).view(2, 3).t()
equal(hvd.allreduce_(across.clone().t().contiguous().t(), op=hvd.Sum), across * world)
half = hvd.allreduce(torch.full((3,), 0.1), compression=hvd.Compression.fp16)
assert half.dtype == torch.float32 and abs(half - 0.1).max() < 1e-3
equal(hvd.allreduce(torch.full((2,), float(rank)), average=False), [sum(range(world))] * 2)
sparse = torch.sparse_coo_tensor([[rank, 3]], [1.0, 2.0], (5,))
dense = sum(np.eye(5)[r] for r in range(world)) + 2 * world * np.eye(5)[3]
handle = hvd.sparse_allreduce_async(sparse, "sparse", hvd.Sum)
equal(handle().to_dense(), dense)
built = (hvd.mpi_threads_supported, hvd.mpi_enabled, hvd.mpi_built, hvd.nccl_built, hvd.ddl_built,
         hvd.ccl_built, hvd.cuda_built, hvd.rocm_built)
assert not any(each() for each in built) and hvd.gloo_built() and hvd.gloo_enabled()
hvd.start_timeline(f"{folder}/timeline.json", mark_cycles=True)
hvd.stop_timeline()
assert not Path(folder, "timeline.json").exists()
say(cases)
"""


@pytest.mark.parametrize("world", [2, 3])
def test_operations_return_the_results_of_numpy(ranks, tmp_path, world):
    ranks.append(Ranks("torch", tmp_path, OPERATIONS, world=world, start=START))
    cases = [ranks[0].say(rank) for rank in range(world)]
    assert cases == {2: [108, 216], 3: [216, 108, 216]}[world]


GRADIENTS = """
def gradient(function, own, weight):
    own = own.clone().requires_grad_()
    found = function(own)
    (found * weight(found)).sum().backward()
    return own.grad

def by_rank(found):
    return torch.full_like(found, rank + 1.0)

ones = torch.ones(4, 2)
total = sum(r + 1.0 for r in range(world))
equal(gradient(lambda x: hvd.allreduce(x, op=hvd.Sum), ones, by_rank), np.full((4, 2), total))
equal(gradient(lambda x: hvd.allreduce(x), ones, by_rank), np.full((4, 2), total / world))
equal(gradient(lambda x: hvd.broadcast(x, 1), ones, by_rank),
      np.full((4, 2), total / world if rank == 1 else 0))
equal(gradient(hvd.allgather, torch.ones(rank + 1, 2), by_rank),
      np.full((rank + 1, 2), total / world))
splits = [r + 1 for r in range(world)]
sent = gradient(lambda x: hvd.alltoall(x, splits)[0], torch.ones(sum(splits)), by_rank)
equal(sent, [r + 1.0 for r in range(world) for _ in range(r + 1)])
parts = np.concatenate([np.full(1, r + 1.0) for r in range(world)])
equal(gradient(lambda x: hvd.reducescatter(x, op=hvd.Average), torch.ones(world), by_rank), parts)
equal(gradient(lambda x: hvd.reducescatter(x, op=hvd.Sum), torch.ones(world), by_rank),
      parts * world)
say("ok")
"""


def test_gradients_flow_back(ranks, tmp_path):
    ranks.append(Ranks("torch", tmp_path, GRADIENTS, start=START))
    assert [ranks[0].say(rank) for rank in range(2)] == ["ok", "ok"]


ORDER_AND_ERRORS = """
names = [f"tensor {number}" for number in range(40)]
order = names if rank == 0 else names[::-1]
handles = {}
for name in order:
    number = names.index(name)
    # Some become complete together, and are not reduced in the same way.
    how = [{"op": hvd.Sum}, {"op": hvd.Max}, {"op": hvd.Sum, "prescale_factor": 2.0}][number % 3]
    own = torch.full((3,), float(number), dtype=[torch.float32, torch.float64][number % 2])
    handles[name] = hvd.allreduce_async(own, name=name, **how)
for number, name in enumerate(names):
    equal(hvd.synchronize(handles[name]), [number * [world, 1, 2 * world][number % 3]] * 3)
assert hvd.synchronize(handles[names[0]]) is None and hvd.poll(handles[names[0]])

lost = hvd.HorovodInternalError
said = raised(lost, hvd.allreduce, torch.ones(2 + rank), name="grows")
assert "'allreduce.grows'" in said and "[2]" in said and "[3]" in said, said
said = raised(lost, hvd.allreduce, torch.ones(2).to([torch.float32, torch.float64][rank]), name="a")
assert "float32" in said and "float64" in said, said
said = raised(lost, hvd.allreduce, torch.ones(2), op=[hvd.Sum, hvd.Max][rank], name="b")
assert "sum" in said and "max" in said, said
said = raised(lost, hvd.allreduce, torch.ones(2), prescale_factor=1.0 + rank, name="c")
assert "prescale" in said, said
said = raised(lost, hvd.broadcast, torch.ones(2), rank, name="d")
assert "root ranks" in said, said
said = raised(lost, hvd.allgather, torch.ones(2, 2 + rank), name="e")
assert "first dimension" in said, said
raised(lost, hvd.allgather, torch.ones(2).to([torch.float32, torch.int32][rank]))
raised(lost, hvd.allgather, torch.ones((2, 2, 2)[: 2 + rank]), name="f")
raised(lost, hvd.alltoall, torch.ones(4, 1 + rank), name="g")
raised(lost, hvd.reducescatter, torch.ones(4, 1 + rank), name="h")
raised(lost, hvd.add_process_set, [rank])

raised(ValueError, hvd.broadcast, torch.ones(2), world)
raised(ValueError, hvd.alltoall, torch.ones(4), [1, 1])
raised(ValueError, hvd.alltoall, torch.ones(4), torch.ones(2))
raised(ValueError, hvd.alltoall, torch.ones(4), [4])
raised(ValueError, hvd.alltoall, torch.ones(3))
raised(ValueError, hvd.alltoall, torch.tensor(3.0))
raised(ValueError, hvd.reducescatter, torch.ones(4), op=hvd.Max)
raised(ValueError, hvd.allreduce, torch.ones(4), op=hvd.Sum, average=True)
raised(ValueError, hvd.allreduce, torch.ones(4), op=17)
raised(ValueError, hvd.init, [0])
raised(ValueError, hvd.ProcessSet, [0, 0])
raised(ValueError, hvd.add_process_set, [0, world])
only = hvd.ProcessSet([1])
assert only.size() is None and only.included() is None
for call in (hvd.allreduce, hvd.alltoall, hvd.broadcast_object, hvd.allgather_object):
    assert "is not registered" in raised(ValueError, call, torch.ones(2), process_set=only)
hvd.add_process_set(only)
raised(ValueError, hvd.add_process_set, only)
raised(ValueError, hvd.add_process_set, [1])
assert only.included() == (rank == 1) and hvd.get_process_set_ids_and_ranks()[1] == [1]
if rank == 0:
    assert "rank 0 is not in process set 1" in raised(
        ValueError, hvd.allreduce, torch.ones(1), process_set=only, name="x")
    raised(ValueError, only.rank)
else:
    equal(hvd.allreduce(torch.ones(1) * 5, process_set=only), [5])
assert hvd.remove_process_set(only) and only.process_set_id is None
assert not hvd.remove_process_set(only) and not hvd.remove_process_set(hvd.global_process_set)

if rank == 0:  # rank 1 submits it once rank 0 has seen its error
    first = hvd.allreduce_async(torch.ones(1), name="twice")
    assert "allreduce.twice" in raised(ValueError, hvd.allreduce_async, torch.ones(1), name="twice")
    assert not hvd.poll(first)
    hvd.barrier()
    hvd.synchronize(first)
else:
    hvd.barrier()
    hvd.allreduce(torch.ones(1), name="twice")
say([hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size(),
     hvd.is_homogeneous(), hvd.mpi_built(), hvd.gloo_built(), bool(hvd.nccl_built())])
"""


def test_operations_have_an_order_names_and_errors(ranks, tmp_path):
    ranks.append(Ranks("torch", tmp_path, ORDER_AND_ERRORS, start=START))
    for rank in range(2):
        assert ranks[0].say(rank) == [rank, 2, 0, 1, True, False, True, False]


JOIN = """
# Rank r has r + 1 minibatches.
sums = [hvd.allreduce(torch.ones(2), name=f"step {step}", op=hvd.Sum)[0].item()
        for step in range(rank + 1)]
assert hvd.join() == world - 1
equal(sums, [world - step for step in range(rank + 1)])
if rank == world - 1:
    mean = hvd.allreduce(torch.full((2,), 3.0))
    said = raised(hvd.HorovodInternalError, hvd.allgather, torch.ones(2), name="late")
    assert "allgather" in said and "join()" in said, said
    raised(hvd.HorovodInternalError, hvd.allreduce, torch.ones(2), op=hvd.Min)
    equal(mean, [1, 1])
assert hvd.join() in range(world)
equal(hvd.allreduce(torch.ones(2), op=hvd.Sum), [world] * 2)
say("ok")
"""


def test_joined_ranks_add_zeros(ranks, tmp_path):
    ranks.append(Ranks("torch", tmp_path, JOIN, world=3, start=START))
    assert [ranks[0].say(rank) for rank in range(3)] == ["ok"] * 3


AGAIN = """
assert hvd.is_initialized() and hvd.global_process_set.ranks == list(range(world))
objects = hvd.allgather_object({"rank": rank, "of": "x" * rank})
assert objects == [{"rank": r, "of": "x" * r} for r in range(world)]
assert hvd.broadcast_object([rank], 1) == [1]
assert hvd.broadcast_object(["it"] if rank == 0 else None, name="n") == ["it"]
hvd.shutdown()
hvd.shutdown()
assert not hvd.is_initialized()
assert "hvd.init()" in raised(ValueError, hvd.rank)
sets = [hvd.ProcessSet([0]), hvd.ProcessSet(range(world))]
if world == 2:
    raised(ValueError, hvd.init, process_sets=sets)  # the second one is the global one
    hvd.shutdown()
hvd.init(process_sets=sets[:1])
assert sets[0].included() == (rank == 0)
equal(hvd.allreduce(torch.ones(1), op=hvd.Sum), [world])
say("ok")
say(os.getpid())
if rank == 0:
    print(raised(hvd.HorovodInternalError, hvd.allreduce, torch.ones(1), name="lonely"), flush=True)
    print(raised(hvd.HorovodInternalError, hvd.join), flush=True)
else:
    sys.stdin = open("/dev/null")
    while True:
        time.sleep(60)
"""


def test_ranks_init_again_and_a_killed_rank_is_reported(ranks, tmp_path):
    ranks.append(Ranks("torch", tmp_path, AGAIN, start=START))
    assert [ranks[0].say(rank) for rank in range(2)] == ["ok", "ok"]
    assert [isinstance(ranks[0].say(rank), int) for rank in range(2)] == [True, True]
    ranks[0].processes[1].kill()
    line = ranks[0].processes[0].stdout.readline()
    assert "'allreduce.lonely' cannot complete: rank 1 was lost" in line
    assert "rank 1 was lost" in ranks[0].processes[0].stdout.readline()


ENDED = """
if rank == 0:
    from hearth.ranks.group import lost_a_rank
    say(raised(hvd.HorovodInternalError, hvd.allreduce, torch.ones(1), name="lonely"))
    say(lost_a_rank())
"""


def test_a_rank_that_others_wait_for_has_ended(ranks, tmp_path):
    """The driver then gets the ended rank's error first, which may be the cause."""
    ranks.append(Ranks("torch", tmp_path, ENDED, start=START))
    assert "rank 1 has called shutdown() or ended" in ranks[0].say(0)
    assert ranks[0].say(0) is True


RANDOM = """
import random
sets = [hvd.global_process_set, *(hvd.add_process_set(pair) for pair in ([0, 1], [1, 2], [0, 2]))]
plan, own_order, count = random.Random(7), random.Random(rank), 0
KINDS = ["allreduce", "allgather", "broadcast", "reducescatter", "alltoall"]
for step in range(6):
    jobs = [(plan.choice(KINDS), plan.choice(sets), plan.randrange(1, 2000), number)
            for number in range(60)]
    jobs = [job for job in jobs if job[1].included()]
    own_order.shuffle(jobs)
    flying = []
    for kind, of, length, number in jobs:
        members, index = of.ranks, of.rank()
        base = np.arange(length * len(members), dtype=np.float32)
        parts = {r: np.split(base + r, len(members))[index] for r in members}
        total = base * len(members) + sum(members)
        expected = {
            "allreduce": total,
            "allgather": np.concatenate([base + r for r in members]),
            "broadcast": base + members[0],
            "reducescatter": np.split(total, len(members))[index],
            "alltoall": np.concatenate([parts[r] for r in members]),
        }[kind]
        more = {"op": hvd.Sum} if kind in ("allreduce", "reducescatter") else {}
        more |= {"root_rank": members[0]} if kind == "broadcast" else {}
        call = getattr(hvd, kind + "_async")
        handle = call(torch.from_numpy(base + rank), name=str(number), process_set=of, **more)
        flying.append((handle, expected, kind))
    own_order.shuffle(flying)
    for handle, expected, kind in flying:
        equal(hvd.synchronize(handle), expected, kind)
        count += 1
say(count)
"""


def test_random_orders_in_process_sets_that_overlap(ranks, tmp_path):
    ranks.append(Ranks("torch", tmp_path, RANDOM, world=3, start=START))
    assert min(ranks[0].say(rank) for rank in range(3)) > 200


NOT_TORCHS = """
class Descent:
    def __init__(self, parameters):
        self.param_groups, self.state = [{"params": list(parameters)}], {}
    def step(self, closure=None): return "stepped"
    def zero_grad(self): return "cleared"
net = torch.nn.Linear(2, 1)
for options in ({}, {"op": hvd.Adasum}):
    optimizer = hvd.DistributedOptimizer(
        Descent(net.parameters()), net.named_parameters(), **options)
    net(torch.ones(1, 2)).sum().backward()
    assert optimizer.step() == "stepped"
    assert optimizer.zero_grad() == "cleared"
assert "has no ranks" in raised(ValueError, hvd.add_process_set, [])
say("ok")
"""


def test_an_optimizer_need_not_derive_from_torchs(ranks, tmp_path):
    ranks.append(Ranks("torch", tmp_path, NOT_TORCHS, world=1, start=START))
    assert ranks[0].say(0) == "ok"
