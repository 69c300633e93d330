"""The driver names a rank that never calls a collective, and does not wait for it forever."""

from __future__ import annotations

import logging
import os
import threading
from datetime import timedelta

import pytest

from hearth.cluster.errors import NodeError
from hearth.torch import TorchCluster


def one_never_comes(notes, ctx):
    import torch
    import torch.distributed as dist

    notes.write(ctx, None)
    for index in range(2):  # loading PyTorch may take a rank more than the group's 10 s
        notes.wait_for(f"worker{index}")
    os.environ["HEARTH_STALL_SECONDS"] = "0.75"
    dist.init_process_group(ctx.backend, timeout=timedelta(seconds=10))
    dist.barrier()
    if ctx.rank == 1:
        threading.Event().wait(60)
    dist.all_reduce(torch.zeros(1000))


def test_a_rank_that_never_calls_a_collective_is_named_in_the_driver(spark, notes, caplog):
    caplog.set_level(logging.WARNING, "hearth.cluster.watch")
    cluster = TorchCluster.run(spark, one_never_comes, notes, workers=2, feeds=())
    with pytest.raises(NodeError, match=r"rank 1 on host \S+ had not arrived before the deadline"):
        cluster.shutdown()
    lines = [record.getMessage() for record in caplog.records]
    waits = "s in all-reduce of 4000 bytes (float32[1000], sum): rank 1"
    stalls = [text for text in lines if waits in text]
    assert stalls, lines
    assert all(text.startswith("worker:0: rank 0 on host ") for text in stalls)
    assert len(stalls) <= 5  # the intervals between them double


def forgets_in_step(notes, ctx):
    import torch.distributed as dist

    os.environ["HEARTH_STALL_SECONDS"] = "0.5"
    notes.write(ctx, None)
    for index in range(2):  # loading PyTorch may take a rank more than the group's 10 s
        notes.wait_for(f"worker{index}")
    dist.init_process_group(ctx.backend, timeout=timedelta(seconds=10))
    dist.barrier()
    for batch in ctx.get_data_feed().as_iterable_dataset(10):
        dist.all_reduce(batch["id"].float().sum())


def test_a_rank_that_waits_for_rows_while_others_wait_for_it_is_named_with_in_step(
    spark, notes, caplog
):
    caplog.set_level(logging.WARNING, "hearth.cluster.watch")
    words = (
        r"rank \d on host \S+ had not arrived .*"
        r"worker:\d has waited for rows for \d+ s: .*in_step\("
    )
    cluster = TorchCluster.run(spark, forgets_in_step, notes, workers=2)
    with pytest.raises(NodeError, match=f"(?s){words}"):
        cluster.train(spark.range(0, 40, 1, 1))  # one partition: one rank gets all rows
    assert "has waited for rows" in caplog.text
    cluster.end()
