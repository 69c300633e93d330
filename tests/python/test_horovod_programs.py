"""PyTorch programs written for Horovod run with only a changed import. Also tests run()."""

from __future__ import annotations

import subprocess
import sys

import pytest
from horovod_ranks import Ranks, horovod_ranks

import hearth.horovod

pytestmark = pytest.mark.torch
ranks = horovod_ranks

CLASSIFIER = """
import torch
import torch.nn.functional as F
import torch.utils.data
import torch.utils.data.distributed
import horovod.torch as hvd

hvd.init()
torch.manual_seed(42 + hvd.rank())
torch.set_num_threads(1)

rows = torch.randn(64, 6, generator=torch.Generator().manual_seed(1))
dataset = torch.utils.data.TensorDataset(rows, (rows.sum(1) > 0).long())
sampler = torch.utils.data.distributed.DistributedSampler(
    dataset, num_replicas=hvd.size(), rank=hvd.rank())
loader = torch.utils.data.DataLoader(dataset, batch_size=8, sampler=sampler)

model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1),
                            torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * hvd.size(), momentum=0.5)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
optimizer = hvd.DistributedOptimizer(
    optimizer, named_parameters=model.named_parameters(), compression=hvd.Compression.none,
    op=hvd.Average, gradient_predivide_factor=1.0)

def metric_average(value, name):
    return hvd.allreduce(torch.tensor(value), name=name).item()

losses = []
for epoch in range(1, 7):
    model.train()
    sampler.set_epoch(epoch)
    total = 0.0
    for data, target in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    losses.append(metric_average(total / len(loader), "avg_loss"))
assert losses[-1] < 0.75 * losses[0], losses

# Gradients are clipped between synchronize() and step().
optimizer.zero_grad()
F.cross_entropy(model(data), target).backward()
optimizer.synchronize()
torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
with optimizer.skip_synchronize():
    optimizer.step()

every = hvd.allgather_object([parameter.tolist() for parameter in model.parameters()])
assert every[0] == every[1]
say("ok")
"""

ELASTIC = """
import torch
import horovod.torch as hvd

hvd.init()
torch.manual_seed(hvd.rank())
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
sampler = hvd.elastic.ElasticSampler(range(12), shuffle=False)
failures = []
begins = []

@hvd.elastic.run
def train(state):
    begins.append((state.epoch, state.batch))
    for state.epoch in range(state.epoch, 2):
        for state.batch in range(state.batch, 4):
            optimizer.zero_grad()
            model(torch.ones(3, 2)).sum().backward()
            optimizer.step()
            if (state.epoch, state.batch) == (1, 2) and not failures:
                failures.append(1)
                # Fails on all ranks, as after a network that broke.
                hvd.allreduce(torch.ones(2 + hvd.rank()))
            if state.batch % 2 == 1:
                state.commit()
        state.batch = 0
    return "trained"

state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0, batch=0)
resets = []
state.register_reset_callbacks([lambda: resets.append(hvd.size())])
assert train(state) == "trained"
# After the failure it begins where the last commit was: in epoch 1 at minibatch 1.
assert begins == [(0, 0), (1, 1)] and resets == [2], (begins, resets)
every = hvd.allgather_object([parameter.tolist() for parameter in model.parameters()])
assert every[0] == every[1]

assert list(sampler) == list(range(12))[hvd.rank()::2]
sampler.record_batch(0, 2)
sampler.sync()
assert sorted(sampler.processed_indices) == [0, 1, 2, 3] and len(sampler) == 4
say("ok")
"""


@pytest.mark.parametrize("program", [CLASSIFIER, ELASTIC], ids=["classifier", "elastic"])
def test_a_program_of_horovod_runs_by_its_import(ranks, tmp_path, program):
    changed = program.replace("import horovod.torch", "import hearth.horovod.torch")
    ranks.append(Ranks("torch", tmp_path, changed))
    assert [ranks[0].say(rank) for rank in range(2)] == ["ok", "ok"]


OPTIMIZERS = """
import warnings
import torch
import hearth.horovod.torch as hvd
hvd.init()
torch.set_num_threads(1)
rows = torch.randn(8, 4, generator=torch.Generator().manual_seed(5))

def net():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

def trained(model, optimizer, rows, passes=1):
    for _ in range(3):
        optimizer.zero_grad()
        for _ in range(passes):
            model(rows).square().mean().backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]

for options in [{}, {"groups": 2}, {"num_groups": 1}, {"gradient_predivide_factor": 2.0},
                {"backward_passes_per_step": 2}, {"op": hvd.Sum}]:
    passes = options.get("backward_passes_per_step", 1) * (2 if "op" in options else 1)
    alone = net()
    expected = trained(alone, torch.optim.SGD(alone.parameters(), 0.05), rows, passes)
    model = net()
    sgd = torch.optim.SGD(model.parameters(), 0.05)
    optimizer = hvd.DistributedOptimizer(sgd, model.named_parameters(), **options)
    assert isinstance(optimizer, torch.optim.SGD)
    found = trained(model, optimizer, rows[rank::world],
                    options.get("backward_passes_per_step", 1))
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a, b, atol=1e-6), options

model = net()
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1))
model(rows).sum().backward()
raised(AssertionError, optimizer.zero_grad)
raised(AssertionError, lambda: model(rows).sum().backward())
optimizer.synchronize()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    optimizer.step()
assert "skip_synchronize" in str(caught[0].message)
named = list(model.named_parameters())
sgd = torch.optim.SGD(model.parameters(), 0.1)
raised(ValueError, hvd.DistributedOptimizer, sgd, named + named[:1])
raised(ValueError, hvd.DistributedOptimizer, sgd, named[1:])
raised(ValueError, hvd.DistributedOptimizer, sgd, model.parameters())
raised(ValueError, hvd.DistributedOptimizer, sgd, op=hvd.Sum, gradient_predivide_factor=2.0)
raised(ValueError, hvd.broadcast_optimizer_state, torch.optim.LBFGS(model.parameters()), 0)

# A parameter that only one rank uses, and rows of a table.
table = torch.nn.Embedding(6, 2, sparse=True)
unused = torch.nn.Parameter(torch.ones(2))
hvd.broadcast_parameters(table.state_dict(), 0)
before = table.weight.detach().clone()
sgd = torch.optim.SGD([*table.parameters(), unused], 1.0)
optimizer = hvd.DistributedOptimizer(sgd)
loss = table(torch.tensor([rank, 5])).sum()
(loss + unused.sum() if rank == 0 else loss).backward()
optimizer.step()
change = (before - table.weight.detach()).tolist()
equal(np.round(change, 5), [[0.5] * 2, [0.5] * 2, [0] * 2, [0] * 2, [0] * 2, [1] * 2])
equal(unused.detach(), [0.5, 0.5])

# The root's state reaches an optimizer that has none.
model = net()
adam = torch.optim.Adam(model.parameters(), lr=0.1 if rank else 0.25)
if rank == 0:
    trained(model, adam, rows)
hvd.broadcast_optimizer_state(adam, 0)
assert adam.param_groups[0]["lr"] == 0.25
moments = hvd.allgather_object(adam.state_dict()["state"][0]["exp_avg"].tolist())
assert moments[0] == moments[1]

# Steps that point the same way are averaged by Adasum, orthogonal ones are added.
way = torch.eye(2)[rank]
equal(hvd.allreduce(way, op=hvd.Adasum), [1, 1])
equal(hvd.allreduce(torch.ones(2), op=hvd.Adasum), [1, 1])
model = net()
adasum = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.05), op=hvd.Adasum)
weights = hvd.allgather_object([p.tolist() for p in trained(model, adasum, rows[rank::world])])
assert weights[0] == weights[1]

norm, alone = hvd.SyncBatchNorm(4), torch.nn.BatchNorm1d(4)
mine, whole = rows[rank::world].clone().requires_grad_(), rows.clone().requires_grad_()
scale = torch.arange(4.0)
(norm(mine) ** 3 * scale).sum().backward()
(alone(whole) ** 3 * scale).sum().backward()
assert torch.allclose(mine.grad, whole.grad[rank::world], atol=1e-4)
assert torch.allclose(norm.running_var, alone.running_var)
say("ok")
"""


def test_optimizers_train_as_one_process_does(ranks, tmp_path):
    ranks.append(Ranks("torch", tmp_path, OPTIMIZERS))
    assert [ranks[0].say(rank) for rank in range(2)] == ["ok", "ok"]


IMPORTS = """
import horovod
import horovod.common.util as util
from horovod.common.basics import Average
from horovod.common.elastic import ObjectState, State
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.runner import run
from horovod.torch.compression import Compression
from horovod.torch.elastic import ElasticSampler, TorchState
from horovod.torch.elastic.sampler import ElasticSampler as Sampler
from horovod.torch.elastic.state import TorchState as OtherState
from horovod.torch.functions import broadcast_optimizer_state, broadcast_parameters
from horovod.torch.mpi_ops import allreduce_async_, poll, rank, size, synchronize
from horovod.torch.optimizer import DistributedOptimizer
from horovod.torch.sync_batch_norm import SyncBatchNorm
import horovod.torch as hvd

assert Sampler is ElasticSampler is hvd.elastic.ElasticSampler and TorchState is OtherState
assert synchronize is hvd.synchronize and rank is hvd.rank and run is horovod.run
assert issubclass(hvd.HorovodInternalError, HorovodInternalError)
assert global_process_set is hvd.global_process_set and Average == hvd.Average
assert util.extension_available("torch") and not util.extension_available("mxnet")
assert not util.gpu_available("torch") and util.gloo_built() and not util.nccl_built()
assert util.split_list([1, 2, 3, 4, 5], 3) == [[1, 2], [3, 4], [5]]
assert [n for n in range(6) if util.num_rank_is_power_2(n)] == [1, 2, 4]
for lost in ("mxnet", "common.mxnet", "torch.mpi"):
    try:
        __import__("horovod." + lost)
        raise SystemExit(lost)
    except ModuleNotFoundError:
        pass
"""


def test_modules_have_the_paths_that_programs_import():
    changed = IMPORTS.replace("import horovod\n", "import hearth.horovod\n")
    changed = changed.replace(" horovod.", " hearth.horovod.").replace(
        '"horovod.', '"hearth.horovod.'
    )
    changed = changed.replace("is horovod.run", "is hearth.horovod.run")
    ended = subprocess.run([sys.executable, "-c", changed], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_run_starts_ranks_here_and_gives_their_results(tmp_path):
    def train(base, *, power):
        import os

        import hearth.horovod.torch as hvd

        hvd.init()
        if power < 0 and hvd.rank() == 1:
            raise KeyError("this rank has had enough")
        assert os.environ["HOROVOD_RANK"] == str(hvd.rank())
        return hvd.allgather_object((base + hvd.rank()) ** power)

    assert hearth.horovod.run(train, (2,), {"power": 2}, num_proc=2) == [[4, 9], [4, 9]]
    with pytest.raises(RuntimeError, match=r"(?s)rank 1 failed.*this rank has had enough"):
        hearth.horovod.run(train, (2,), {"power": -1}, np=2)
    program = tmp_path / "train.py"
    program.write_text(
        "import sys, hearth.horovod.torch as hvd\n"
        "hvd.init()\n"
        "open(f'{sys.argv[1]}/{hvd.rank()} of {hvd.size()}', 'w').close()\n"
        "sys.exit(hvd.rank() * int(sys.argv[2]))\n"
    )
    command = [sys.executable, "-m", "hearth.horovod", "-np", "2", sys.executable]
    command += [str(program), str(tmp_path)]
    subprocess.run([*command, "0"], check=True)
    assert (tmp_path / "0 of 2").exists() and (tmp_path / "1 of 2").exists()
    failed = subprocess.run([*command, "3"], capture_output=True, text=True)
    assert failed.returncode == 1 and "rank 1 failed: it ended with status 3" in failed.stderr
