"""Names of what a DDP program reduces, in the timeline."""

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
    assert first[3] == 2.0  # the last bias: each rank's two rows, averaged
    for process in timeline.read_all(tmp_path):
        names = [e["name"] for e in process.events if e.get("cat") == "collective"]
        assert sum("1.bias" in name or "0.weight" in name for name in names) >= 1, names
        assert "all-reduce 'loss'" in names
        assert "barrier" in names
