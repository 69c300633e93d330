"""TorchCluster: ranks find each other; rows become tensors; failures name the rank."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest

from hearth.cluster.driver import pace
from hearth.torch import NodeError, TorchCluster, process_group


@pytest.mark.parametrize("backend", ["hearth", "gloo"])
def test_the_ranks_rendezvous_repeatedly_by_the_environment_alone(spark, notes, backend):
    def main(notes, ctx):
        import os

        import torch
        import torch.distributed as dist

        sums = []
        for number in range(20):  # a new group must not read old keys in the store
            dist.init_process_group(backend)
            value = torch.tensor([ctx.rank + 1.0 + number])
            dist.all_reduce(value)
            sums.append(value.item())
            dist.destroy_process_group()
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")
        assert (ctx.backend, ctx.device.type) == ("hearth", "cpu")
        notes.write(ctx, [sums, [int(os.environ[name]) for name in names]])

    TorchCluster.run(spark, main, notes, workers=2, feeds=(), gpus_per_worker=0).shutdown()
    sums = [3.0 + 2 * number for number in range(20)]
    assert notes.read() == {"worker0": [sums, [0, 2, 0, 2, 0]], "worker1": [sums, [1, 2, 1, 2, 0]]}


def test_an_evaluator_has_no_rank(spark, notes):
    def main(notes, ctx):
        import os

        notes.write(ctx, [ctx.rank, os.environ.get("RANK"), ctx.world_size])

    roles = {"worker": 1, "evaluator": 1}
    TorchCluster.run(spark, main, notes, roles_of_nodes=roles, feeds=()).shutdown()
    assert notes.read() == {"worker0": [0, "0", 1], "evaluator0": [None, None, 1]}


def reduces(when, ctx):
    """Rank 1 ends as `when` specifies while rank 0 is waiting for it in a collective."""
    import torch
    import torch.distributed as dist

    dist.init_process_group(when["backend"])
    for step in range(10**9):
        if ctx.rank == 1 and step == 3:
            with open(when["file"], "w") as file:
                file.write(str(time.time()))
            if when["how"] == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                raise ValueError("these rows are bad")
            finally:
                dist.destroy_process_group()
                time.sleep(when["late"])  # rank 0 notices the loss long before the report
        dist.all_reduce(torch.zeros(1000))


@pytest.mark.parametrize("backend", ["hearth", "gloo"])
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("killed", r"^worker:1 on host \S+ failed: its process was killed by SIGKILL"),
        ("raised", r"^worker:1 on host \S+ failed: ValueError: these rows are bad\nTraceback"),
    ],
)
def test_the_error_of_a_peer_of_a_rank_that_ends_is_not_reported(
    spark, tmp_path, backend, how, words
):
    when = {"file": str(tmp_path / "when"), "how": how, "late": 1.0, "backend": backend}
    cluster = TorchCluster.run(spark, reduces, when, workers=2)
    with pytest.raises(NodeError, match=words) as found:
        cluster.train(spark.range(1000))
    reported_s = time.time() - float((tmp_path / "when").read_text())
    assert reported_s < 30  # a tenth of a second on an idle machine, plus rank 1's sleep
    assert (found.value.node, found.value.rank) == ("worker:1", 1)
    with pytest.raises(NodeError, match=words):
        cluster.shutdown()


def ends_early(how, ctx):
    import torch
    import torch.distributed as dist

    process_group.CAUSE_WAIT_S = 200.0  # more than a busy machine needs
    dist.init_process_group("gloo" if how == "gloo" else "hearth")
    if how == "checkpoint":
        if ctx.rank == 0:
            ctx.checkpoint(1, model=torch.nn.Linear(2, 1))
        return
    if ctx.rank == 0:
        dist.all_reduce(torch.zeros(1000))


@pytest.mark.parametrize("how", ["hearth", "gloo", "checkpoint"])
def test_a_rank_that_ends_before_a_collective_call_is_named_at_once(spark, tmp_path, how):
    cluster = TorchCluster.run(spark, ends_early, how, workers=2, checkpoint_dir=str(tmp_path))
    started_s = time.monotonic()
    with pytest.raises(NodeError, match=r"^worker:0 .*\(worker:1 had ended: all ranks must make"):
        cluster.shutdown()
    assert time.monotonic() - started_s < 100


def test_a_failed_upload_is_not_taken_for_a_collective_call(spark):
    def main(_, ctx):
        if ctx.rank == 0:
            raise ConnectionResetError("cannot upload the model: Connection reset by peer")

    with pytest.raises(NodeError, match=r"worker:0 .*cannot upload") as found:
        TorchCluster.run(spark, main, workers=2).shutdown()
    assert "had ended" not in str(found.value)


def test_results_of_a_model_are_returned_in_order(spark):
    def main(_, ctx):
        import torch

        double = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(double.weight, 2.0)
        feed = ctx.get_data_feed(train_mode=False)
        for batch in feed.as_iterable_dataset(7):
            feed.batch_results(double(batch["id"].float()[:, None])[:, 0])

    with TorchCluster.run(spark, main, workers=2) as cluster:
        found = cluster.inference(spark.range(0, 40, 1, 4), schema="twice double").collect()
    assert [row.twice for row in found] == [2.0 * n for n in range(40)]


def test_a_long_train_call_shows_each_nodes_rate(spark, monkeypatch, capsys):
    def main(_, ctx):
        for _ in ctx.get_data_feed().as_iterable_dataset(10):
            time.sleep(0.1)

    monkeypatch.setattr(pace, "_LINES_S", 0.2)
    monkeypatch.setattr(pace, "_WINDOW_S", 0.3)
    with TorchCluster.run(spark, main, workers=2) as cluster:
        cluster.train(spark.range(0, 400, 1, 4))
    node = r"worker:{} [\d,]+ \(waits \d+%\)"
    line = rf"^[\d,]+ rows/s: {node.format(0)}, {node.format(1)}$"
    shown = capsys.readouterr().err
    assert re.search(line, shown, re.MULTILINE), shown
