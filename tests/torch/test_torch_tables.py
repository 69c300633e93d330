"""A training reads one version of a table while writers change the table."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from hearth import data
from hearth.torch import TorchCluster

ROWS, STEPS = 200, 5


def train_two_epochs(args, ctx):
    """Notes the rows of each step. Between the epochs the table changes; then rank 1 dies once."""
    import torch
    import torch.distributed as dist

    notes, table = args
    dist.init_process_group(ctx.backend)
    model = torch.nn.Linear(1, 1)
    loader = ctx.dataset("train", batch_size=20, columns=("id", "day"))
    step = ctx.restore(model=model, data=loader) or 0
    while loader.epoch < 2:
        for ids, _ in loader:
            step += 1
            Path(notes, f"{step}-{ctx.rank}-{ctx.restart_count}").write_text(
                json.dumps(ids.tolist())
            )
            if step % 2 == 0:
                ctx.checkpoint(step, model=model, data=loader)
            if ctx.restart_count == 0 and (step, ctx.rank) == (STEPS, 0):
                DeltaTable(table).optimize.compact()
                write_deltalake(table, pa.table({"id": [7], "day": [7]}), mode="overwrite")
            dist.barrier()
            if ctx.restart_count == 0 and (step, ctx.rank) == (STEPS + 3, 1):
                os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_compaction_between_epochs_and_a_restart_change_no_rows(spark, tmp_path):
    notes, table, kept = tmp_path / "steps", str(tmp_path / "table"), f"file://{tmp_path}/kept"
    notes.mkdir()
    for i in range(4):
        part = pa.table({"id": range(i * 50, i * 50 + 50), "day": [i % 2] * 50})
        write_deltalake(table, part, partition_by=["day"], mode="append")
    datasets = {"train": data.delta(table, spool=False)}
    options = {"workers": 2, "restart": True, "checkpoint_dir": kept}
    args = (str(notes), table)
    cluster = TorchCluster.run(spark, train_two_epochs, args, datasets=datasets, **options)
    cluster.shutdown()
    assert DeltaTable(table).version() == 5
    steps: dict[int, dict[int, list[list[int]]]] = {}
    for file in notes.iterdir():
        step, rank, _ = map(int, file.name.split("-"))
        steps.setdefault(step, {}).setdefault(rank, []).append(json.loads(file.read_text()))
    assert sorted(steps) == list(range(1, 2 * STEPS + 1))
    again = [found for by_rank in steps.values() for found in by_rank.values() if len(found) > 1]
    assert again  # steps after the checkpoint were repeated
    assert all(found[0] == found[1] for found in again)
    for epoch in (0, 1):
        numbers = range(epoch * STEPS + 1, epoch * STEPS + STEPS + 1)
        taken = [i for step in numbers for found in steps[step].values() for i in found[0]]
        assert sorted(taken) == list(range(ROWS))
    # A new driver that resumes from these checkpoints reads the same version.
    again = TorchCluster.run(spark, train_two_epochs, args, datasets=datasets, **options)
    again.shutdown()
    assert again.datasets.plans["train"].identity.startswith("Delta version 3, 200 rows, ")
