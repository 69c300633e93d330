"""A DDP program whose executor is lost goes on from its checkpoint, and no row is missed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from hearth.cluster.node_process import executor_pid
from hearth.torch import TorchCluster

ROWS = 160


def counts_rows(folder, ctx):
    """Every row moves a weight of its own; the weights are kept after each step."""
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
        dist.barrier()  # the file is there before anybody calls its rows safe
        feed.commit()
    if ctx.rank == 0:
        torch.save([ctx.restart_count, began, model.weight.detach()], Path(folder, "end.pt"))


def test_a_ddp_program_goes_on_from_its_checkpoint_and_has_seen_every_row(spark, tmp_path):
    import torch

    with TorchCluster.run(spark, counts_rows, str(tmp_path), workers=2, restart=True) as cluster:
        cluster.train(spark.range(0, ROWS, 1, 16))
    assert cluster.restarts.count == 1
    restarts, began, ended = torch.load(tmp_path / "end.pt")
    assert restarts == 1
    assert (began != 0).sum() > 20  # it did not begin anew
    assert (ended != 0).all()
