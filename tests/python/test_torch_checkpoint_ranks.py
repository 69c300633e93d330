"""ctx.checkpoint(), ctx.restore() and ctx.reduce_metrics() with several ranks."""

from __future__ import annotations

import json
import os
import signal

import pytest
import torch
import torch_ranks as ranks_of_torch
from checkpoint_ranks import CONTEXT, SHARDED, alone, needs_fsdp2, said
from torch_ranks import Ranks, torch_ranks  # noqa: F401


@pytest.fixture
def ranks(torch_ranks, monkeypatch):  # noqa: F811
    def start(program, *folders, world=2, backend="hearth"):
        begin = ranks_of_torch.START.replace('"hearth", timeout', f'"{backend}", timeout')
        monkeypatch.setattr(ranks_of_torch, "START", begin)
        case = json.dumps([str(folder) for folder in folders])
        # Optimizers import torch._dynamo, which takes longer than the tested steps.
        package = "torch._dynamo"
        torch_ranks.append(Ranks(CONTEXT + program, world=world, case=case, package=package))
        return torch_ranks[-1]

    return start


UNBROKEN = """
model, optimizer = make()
torch.manual_seed(rank)
data = {"epoch": 0, "batch": 0}
first = ctx.restore(model=model, optimizer=optimizer, data=data) or 0
train(model, optimizer, first, 5)
data["batch"] = 5
if first == 0:
    ctx.checkpoint(5, model=model, optimizer=optimizer, data=data)
    train(model, optimizer, 5, 8)
else:
    train(model, optimizer, 5, 8)
say([first, data["batch"], ctx.mgr.commits, bits(model), torch.rand(1).item()])
"""


@pytest.mark.parametrize("backend", ["hearth", "gloo"])
def test_a_program_that_resumes_has_the_bits_of_an_unbroken_one(ranks, tmp_path, backend):
    unbroken = said(ranks(UNBROKEN, tmp_path, backend=backend))
    resumed = said(ranks(UNBROKEN, tmp_path, backend=backend))
    assert [each[:3] for each in unbroken] == [[0, 5, 1]] * 2
    assert [each[:3] for each in resumed] == [[5, 5, 0]] * 2
    assert [each[3:] for each in resumed] == [each[3:] for each in unbroken]
    assert resumed[0][4] != resumed[1][4]  # the ranks' random numbers differ


def test_ranks_that_go_on_while_rank_0_writes_have_the_same_bits_when_resumed(ranks, tmp_path):
    behind = UNBROKEN.replace("data=data)\n    train", "data=data, background=True)\n    train")
    behind = behind.replace("say([first", "ctx.end()\nsay([first")
    unbroken = said(ranks(behind, tmp_path))
    resumed = said(ranks(behind, tmp_path))
    assert [each[:3] for each in unbroken] == [[0, 5, 0]] * 2
    assert [each[0] for each in resumed] == [5, 5]
    assert [each[3:] for each in resumed] == [each[3:] for each in unbroken]


def test_another_number_of_ranks_restores_the_same_state(ranks, tmp_path):
    program = """
model, optimizer = make(seed=rank)
step = ctx.restore(model=model, optimizer=optimizer)
say([step, bits(model), optimizer.state_dict()["state"][0]["step"].item()])
"""
    ranks(UNBROKEN, tmp_path).say(0)
    one, three = (
        said(ranks(program, tmp_path, world=1), 1),
        said(ranks(program, tmp_path, world=3), 3),
    )
    assert one[0][0] == 5
    assert one * 3 == three


def test_all_ranks_restore_the_checkpoint_that_rank_0_found(ranks, tmp_path):
    for rank, step in ((0, 5), (1, 7), (1, 9)):
        model = torch.nn.Linear(1, 1)
        torch.nn.init.constant_(model.weight, float(step))
        alone(tmp_path / str(rank)).checkpoint(step, model=model)
    program = """
model = torch.nn.Linear(1, 1)
say([ctx.restore(model=model), model.weight.item(), ctx.mgr.warnings])
"""
    first, second = said(ranks(program, tmp_path / "0", tmp_path / "1"))
    assert first == [5, 5.0, []]
    assert second[:2] == [5, 5.0]
    words = f"rank 1 sees checkpoint-000002-step-9 in {tmp_path}/1, but rank 0, which decides"
    assert second[2][0].startswith(words)
    first, second = said(ranks(program, tmp_path / "none", tmp_path / "1"))
    assert (first[0], second[0]) == (None, None)
    assert second[2][0].startswith(words)


def test_ranks_that_disagree_get_an_error_and_write_no_checkpoint(ranks, tmp_path):
    # Each rank looks at the folder before its next call, and without all calls no rank can write.
    program = """
model, optimizer = make()
def refused(call):
    say([attempt(call), os.path.exists(folders[0])])
refused(lambda: ctx.checkpoint(5 + rank, model=model))
refused(lambda: ctx.checkpoint(5, model=model, **({"extra": {}} if rank else {})))
refused(lambda: ctx.checkpoint(5, model=model, data={"batch": rank}))
refused(lambda: ctx.checkpoint(5, model=model, more=7 if rank else {}))
refused(lambda: ctx.restore(**{"model" if rank else "other": model}))
say(attempt(lambda: ctx.checkpoint(
    5, model=model, data={"batch": 5, "known": 7 if rank else None})))
"""
    group = ranks(program, tmp_path / "run")
    for words in (
        'got a different step or parts on rank 1 than on rank 0 ([6, "model"], not [5, "model"])',
        "got a different step or parts on rank 1",
        "the state of 'data' on rank 1 differs from rank 0's",
        "rank 1: 'more' is a int, which has no state_dict()",
        "restore() got different parts on rank 1",
    ):
        replies = said(group)
        assert replies[0] == replies[1]
        message, written = replies[0]
        assert words in message
        assert not written
    assert said(group) == [None, None]
    assert (tmp_path / "run").exists()


def test_if_rank_0_cannot_write_all_ranks_raise_and_continue(ranks, tmp_path):
    (tmp_path / "file").write_text("no folder")
    program = """
model, optimizer = make()
say(attempt(lambda: ctx.checkpoint(5, model=model)))
ctx.checkpoint(5, model=model, folder=folders[0] + ".more")
say([ctx.restore(model=model, folder=folders[0] + ".more"), ctx.mgr.commits])
"""
    group = ranks(program, tmp_path / "file")
    replies = said(group)
    assert "cannot be written to /" in replies[0]
    assert replies[0].startswith("InvalidArgumentError: rank 0: ")
    assert replies[0] == replies[1]
    assert said(group) == [[5, 1]] * 2


def test_a_rank_that_is_killed_before_the_seal_leaves_the_older_checkpoint(ranks, tmp_path):
    program = """
from hearth.checkpoints.checkpoint_folder import Draft
model, optimizer = make()
say(ctx.restore(model=model))
ctx.checkpoint(1, model=model)
seal = Draft.seal
Draft.seal = lambda *given: (say("written"), time.sleep(600))
ctx.checkpoint(2, model=model)
"""
    group = ranks(program, tmp_path)
    assert said(group) == [None, None]
    assert group.say(0) == "written"
    os.kill(group.processes[0].pid, signal.SIGKILL)
    assert "connection" in group.processes[1].stderr.read().lower()
    assert len(os.listdir(tmp_path)) == 2
    again = """
say(ctx.restore(model=make()[0]))
ctx.checkpoint(2, model=make()[0])
say(ctx.mgr.warnings)
"""
    group = ranks(again, tmp_path)
    assert said(group) == [1, 1]
    assert said(group) == [[], []]
    assert sorted(os.listdir(tmp_path)) == ["checkpoint-000001-step-1", "checkpoint-000002-step-2"]


@needs_fsdp2
@pytest.mark.parametrize(("world", "scheme"), [(2, ""), (3, ""), (3, "local://")])
def test_shards_are_restored_by_as_many_and_by_other_ranks(ranks, tmp_path, world, scheme):
    folder = f"{scheme}{tmp_path}"
    save = """
step(model, optimizer, 1)
ctx.checkpoint(1, model=model, optimizer=optimizer, data={"batch": 1})
step(model.eval(), optimizer, 2)
say(whole(model))
"""
    load = """
for parameter in model.parameters():
    torch.nn.init.zeros_(parameter)
found = attempt(lambda: ctx.restore(model=model, optimizer=optimizer, data={}))
step(model.eval(), optimizer, 2)
say([found, whole(model)])
"""
    (first, second) = said(ranks(SHARDED + save, folder))
    assert first == second
    loaded = said(ranks(SHARDED + load, folder, world=world), world)
    for found, values in loaded:
        assert found == 1
        for value, expected in zip(values, first, strict=True):
            torch.testing.assert_close(torch.tensor(value), torch.tensor(expected))


@needs_fsdp2
def test_shards_of_another_model_or_of_a_missing_file_are_reported(ranks, tmp_path):
    program = """
step(model, optimizer, 1)
ctx.checkpoint(1, model=model, optimizer=optimizer)
other = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 3))
fully_shard(other)
say(attempt(lambda: ctx.restore(model=other)))
say(attempt(lambda: ctx.restore(model=torch.nn.Linear(4, 3))))
say(attempt(lambda: ctx.checkpoint(2, optimizer=optimizer)))
say(attempt(lambda: ctx.checkpoint(2, state={"of": model.state_dict()})))
dist.barrier()
if rank == 0:
    os.unlink(folders[0] + "/checkpoint-000001-step-1/__1_0.distcp")
say([attempt(lambda: ctx.restore(model=model)), ctx.mgr.warnings])
"""
    group = ranks(SHARDED + program, tmp_path)
    for words in (
        "it is of another 'model': it has model.1.num_batches_tracked, model.1.running_mean",
        "'model' is sharded in /",
        "the parameters of 'optimizer' are sharded: pass their module, too",
        "state['of']['0.weight'] has shards on other ranks: pass the model and its optimizer",
    ):
        replies = said(group)
        assert replies[0] == replies[1]
        assert words in replies[0], replies[0]
    first, second = said(group)
    assert (first[0], second) == (None, [None, []])
    assert "__1_0.distcp is missing" in first[1][0]


@pytest.mark.parametrize("backend", ["hearth", "gloo"])
def test_metrics_are_reduced_by_weights(ranks, tmp_path, backend):
    program = """
import warnings
warnings.simplefilter("error")
loss = torch.tensor(1.0 + rank, requires_grad=True)
say(attempt(lambda: ctx.reduce_metrics({"loss": loss, "share": 0.25 * rank}, weight=1 + 2 * rank)))
say(attempt(lambda: ctx.reduce_metrics({"loss": float("nan") if rank else 3}, weight=1 - rank)))
say(repr(attempt(lambda: ctx.reduce_metrics({"loss": 1}, weight=0))))
say(attempt(lambda: ctx.reduce_metrics({"loss": 1, f"of{rank}": 2})))
say(attempt(lambda: ctx.reduce_metrics({"loss": torch.zeros(2) if rank else 1})))
say(attempt(lambda: ctx.reduce_metrics({f"{i}" * 50: i for i in range(100)}, weight=0.5)))
"""
    group = ranks(program, tmp_path, backend=backend)
    assert said(group) == [{"loss": 1.75, "share": 0.1875}] * 2
    assert said(group) == [{"loss": 3.0}] * 2
    assert said(group) == ["{'loss': nan}"] * 2
    replies = said(group)
    assert replies[0] == replies[1]
    assert "different names on rank 1 and on rank 0: of0, of1 on one of them only" in replies[0]
    replies = said(group)
    assert replies[0] == replies[1]
    words = "reduce_metrics() on rank 1: 'loss' is a Tensor of shape [2], not one number"
    assert words in replies[0]
    assert said(group) == [{f"{i}" * 50: i for i in range(100)}] * 2


def test_ranks_that_have_counted_the_rows_at_different_times_do_not_disagree(ranks, tmp_path):
    program = """
model, optimizer = make()
known = [[3, "aa"], None] if rank else [None, [4, "bb"]]
say(attempt(lambda: ctx.checkpoint(5, model=model, data={"batch": 1, "partitions": known})))
"""
    assert said(ranks(program, tmp_path)) == [None, None]
