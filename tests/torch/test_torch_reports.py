"""Metrics, output and results of ranks on Spark's executors, during a run and after a lost rank."""

from __future__ import annotations

import os
import signal
import socket
import sys

import pytest

from hearth.torch import NodeError, TorchCluster


def train_until_stopped(args, ctx):
    """Ends only when the driver has received its reports and requests the end."""
    import numpy as np
    import torch
    import torch.distributed as dist

    dist.init_process_group(ctx.backend)
    print("rank", ctx.rank, "has", args["rows"])
    print("a warning", file=sys.stderr)
    step = 0
    while not ctx.should_stop:
        step += 1
        ctx.report(step=step, loss=torch.tensor(1 / step), rank=np.int64(ctx.rank))
        dist.all_reduce(torch.zeros(1))
    dist.destroy_process_group()
    return {"steps": step, "weights": torch.full((2,), float(ctx.rank))}


def test_reports_arrive_while_the_ranks_run_and_the_callback_ends_all_at_one_step(
    spark, tmp_path, capsys
):
    seen = []

    def on_report(report):
        seen.append(report)
        return report.step < 20

    cluster = TorchCluster.run(
        spark, train_until_stopped, {"rows": 7}, workers=2, feeds=(), log_dir=str(tmp_path),
        on_report=on_report,
    )  # fmt: skip
    first, second = cluster.result()
    assert first["steps"] == second["steps"] >= 20
    assert [float(r["weights"][0]) for r in (first, second)] == [0.0, 1.0]
    assert seen[0].step == 1 and seen[0].values == {"loss": 1.0, "rank": 0.0}
    rows = cluster.history.where("name = 'rank'").orderBy("step", "rank").collect()
    steps = [row.step for row in rows if row.rank == 1]
    assert steps[0] == 1 and steps[-1] == first["steps"]  # the last report is never dropped
    assert {(row.rank, row.value) for row in rows} == {(0, 0.0), (1, 1.0)}
    assert [path.name.startswith("events.out") for path in tmp_path.iterdir()] == [True]
    shown, label = capsys.readouterr().err, f"[rank 0 {socket.gethostname()}] "
    assert f"{label}rank 0 has 7\n" in shown and f"{label}a warning\n" in shown
    assert "step 1  loss 1  rank 0" in shown and "rank 1 " not in shown


def counts(how, ctx):
    """Kills rank 1 in step 5, before any restart."""
    import torch
    import torch.distributed as dist

    dist.init_process_group(ctx.backend)
    state = {"done": 0}
    begin = (ctx.restore(state=state) or 0) + 1
    for step in range(begin, 7):
        ctx.report(step=step, life=ctx.restart_count)
        dist.all_reduce(torch.zeros(1))
        if step == 3:
            ctx.checkpoint(step, state={"done": step})
        if step == 5 and ctx.rank == 1 and ctx.restart_count == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return begin


@pytest.mark.parametrize("restart", [False, True])
def test_reports_of_a_killed_rank_are_complete_and_continue_after_a_restart(
    spark, tmp_path, restart
):
    cluster = TorchCluster.run(
        spark, counts, None, workers=2, feeds=(), restart=restart, checkpoint_dir=str(tmp_path),
        logs="all",
    )  # fmt: skip
    if restart:
        assert cluster.result() == [4, 4]
    else:
        with pytest.raises(NodeError, match=r"worker:1 on host .* SIGKILL"):
            cluster.result()
    rows = [(row[0], row[3]) for row in cluster.history_rows if row[1] == 1]
    lives = {step: float(restart and step > 3) for step in range(1, 7 if restart else 6)}
    assert rows == list(lives.items())
