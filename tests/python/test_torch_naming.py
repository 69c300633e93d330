"""The names of a DDP program's reductions in the timeline."""

from __future__ import annotations

import pytest
from torch_ranks import Ranks, torch_ranks

from hearth.tools import timeline

pytestmark = pytest.mark.torch
ranks = torch_ranks

NAMED = """
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.nn.parallel import DistributedDataParallel
from hearth.torch import name_gradients, naming

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
parallel = DistributedDataParallel(model)
name_gradients(parallel, bf16_compress_hook if case == "bf16" else None)
parallel(torch.full((2, 8), rank + 1.0)).sum().backward()
with naming("loss"):
    dist.all_reduce(torch.zeros(1))
dist.barrier()
say([parameter.grad.sum().item() for parameter in model.parameters()])
dist.destroy_process_group()
"""


@pytest.mark.parametrize("case", ["float32", "bf16"])
def test_gradients_have_the_names_of_their_parameters(ranks, tmp_path, monkeypatch, case):
    monkeypatch.setenv("HEARTH_TIMELINE", str(tmp_path))
    ranks.append(Ranks(NAMED, case=case))
    first, second = (ranks[0].say(rank) for rank in range(2))
    assert first == second
    assert first[3] == 2.0  # the last bias: the average over both ranks' two rows
    for process in timeline.read_all(tmp_path):
        names = [e["name"] for e in process.events if e.get("cat") == "collective"]
        assert sum("1.bias" in name or "0.weight" in name for name in names) >= 1, names
        assert "all-reduce 'loss'" in names
        assert "barrier" in names


POWER = """
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel
from hearth.torch import name_gradients

def twice(state, bucket):
    def again(_):  # as PowerSGD does: another reduction follows the first, and is waited for
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().wait()[0]

    first = dist.all_reduce(torch.ones(1), async_op=True).get_future()
    if rank == 0:
        first.wait()  # so that what follows runs in this thread
    return first.then(again)

torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(64, 64, bias=case == "twice"))
if case == "twice":
    name_gradients(model, twice)
else:
    state = PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    name_gradients(model, powerSGD_hook, state)
for step in range(4):
    model.zero_grad()
    model(torch.full((2, 64), rank + 1.0)).sum().backward()
say([parameter.grad.sum().item() for parameter in model.parameters()])
dist.destroy_process_group()
"""


@pytest.mark.parametrize("case", ["twice", "PowerSGD"])
def test_a_hook_whose_reductions_follow_each_other(ranks, case):
    ranks.append(Ranks(POWER, case=case, seconds=20))
    first, second = (ranks[0].say(rank) for rank in range(2))
    assert first == second
    # 4,096 weights: both ranks' two rows, averaged (PowerSGD) or summed.
    wanted = 4096 * (6.0 if case == "twice" else 3.0)
    assert first[0] == pytest.approx(wanted, rel=1e-3)
