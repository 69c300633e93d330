"""hearth.horovod.spark.run() on two executors."""

from __future__ import annotations

import pytest

import hearth.horovod.spark
from hearth.cluster import NodeError


def train(rows, *, fails=False):
    import os

    import torch

    import hearth.horovod.torch as hvd

    hvd.init()
    torch.manual_seed(hvd.rank())
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    data = torch.full((rows, 3), 1.0 + hvd.rank())
    for _ in range(3):
        optimizer.zero_grad()
        (model(data) - 1).square().mean().backward()
        optimizer.step()
    if fails and hvd.rank() == 1:
        raise KeyError("rank 1 has had enough")
    if fails:
        hvd.barrier()
    weights = [parameter.tolist() for parameter in model.parameters()]
    return hvd.rank(), weights, os.environ["GIVEN"], b"x" * 700_000


def test_run_returns_the_results_of_all_ranks(spark):
    found = hearth.horovod.spark.run(train, (4,), num_proc=2, env={"GIVEN": "so"}, verbose=0)
    assert [each[0] for each in found] == [0, 1]
    assert found[0][1:] == found[1][1:]
    assert found[0][2:] == ("so", b"x" * 700_000)


def test_a_failing_rank_fails_the_run(spark):
    with pytest.raises(NodeError, match="rank 1 has had enough"):
        hearth.horovod.spark.run(train, (4,), {"fails": True}, 2, env={"GIVEN": ""})
    with pytest.raises(ValueError, match="min_num_proc=3"):
        hearth.horovod.spark.run_elastic(train, (4,), num_proc=2, min_num_proc=3)
