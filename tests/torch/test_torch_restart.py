"""A DDP program resumes from its checkpoint after a lost executor, and misses no row."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from hearth.cluster.task.node_process import executor_pid
from hearth.torch import TorchCluster

ROWS = 160


def counts_rows(folder, ctx):
    """Every row changes a separate weight; the weights are saved after each step."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from hearth.torch import in_step

    dist.init_process_group(ctx.backend)
    kept = Path(folder, "kept.pt")
    model = torch.nn.Linear(ROWS, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    if ctx.restart_count:
        model.load_state_dict(torch.load(kept))
    began = model.weight.detach().clone()
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=1.0)
    feed = ctx.get_data_feed()
    for steps, (batch, weight) in enumerate(in_step(feed.as_iterable_dataset(5))):
        if ctx.rank == 1 and steps == 6 and not ctx.restart_count:
            os.kill(executor_pid(), signal.SIGKILL)
        optimizer.zero_grad()
        rows = torch.nn.functional.one_hot(batch["id"], ROWS).float()
        (-parallel(rows).mean() * weight).backward()
        optimizer.step()
        if ctx.rank == 0:
            torch.save(model.state_dict(), kept.with_suffix(".new"))
            os.replace(kept.with_suffix(".new"), kept)
        dist.barrier()  # the file must exist before any rank commits its rows
        feed.commit()
    if ctx.rank == 0:
        torch.save([ctx.restart_count, began, model.weight.detach()], Path(folder, "end.pt"))


@pytest.mark.long
def test_a_ddp_program_resumes_from_its_checkpoint_and_has_seen_every_row(spark, tmp_path):
    import torch

    with TorchCluster.run(spark, counts_rows, str(tmp_path), workers=2, restart=True) as cluster:
        cluster.train(spark.range(0, ROWS, 1, 16))
    assert cluster.restarts.count == 1
    restarts, began, ended = torch.load(tmp_path / "end.pt")
    assert restarts == 1
    assert (began != 0).sum() > 20  # it did not start from zero
    assert (ended != 0).all()


def resumes(dies, ctx):
    """Takes seven steps; rank 1 is killed in the fifth, after the checkpoint of the third."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group(ctx.backend)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = {"batch": 0}
    begin = ctx.restore(model=model, optimizer=optimizer, data=data) or 0
    for step in range(begin + 1, 8):
        optimizer.zero_grad()
        rows = torch.tensor([[float(step), float(ctx.rank)]])
        model(torch.nn.functional.dropout(rows)).sum().backward()
        optimizer.step()
        data["batch"] = step
        if step % 3 == 0:
            ctx.checkpoint(step, model=model, optimizer=optimizer, data=data)
        if dies and (ctx.rank, step, ctx.restart_count) == (1, 5, 0):
            os.kill(os.getpid(), signal.SIGKILL)
    mean = ctx.reduce_metrics({"weight": model.module.weight[0, 0]}, weight=1 + ctx.rank)
    if ctx.rank == 0:
        end = [ctx.restart_count, begin, model.module.weight.tolist(), mean["weight"]]
        Path(ctx.checkpoint_dir, "end.json").write_text(json.dumps(end))


def test_a_program_whose_rank_is_killed_resumes_from_its_newest_checkpoint(spark, tmp_path):
    ends = []
    for dies in (True, False):
        folder = tmp_path / str(dies)
        options = {"feeds": (), "restart": True, "checkpoint_dir": str(folder)}
        with TorchCluster.run(spark, resumes, dies, workers=2, **options) as cluster:
            pass
        assert cluster.restarts.count == dies
        ends.append(json.loads((folder / "end.json").read_text()))
    assert ends[0][:2] == [1, 3]
    assert ends[1][:2] == [0, 0]
    assert ends[0][2:] == ends[1][2:]
