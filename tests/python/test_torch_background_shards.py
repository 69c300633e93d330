"""ctx.checkpoint(background=True) with FSDP2: ranks write while the program continues."""

from __future__ import annotations

import os

import pytest
import torch
import torch_ranks as ranks_of_torch
from checkpoint_ranks import CONTEXT, SHARDED, needs_fsdp2, said
from torch_ranks import Ranks, torch_ranks  # noqa: F401
from webhdfs_server import WebHdfs

# Checkpoint threads write their files only after the gate is open.
GATE = """
import glob, signal, threading
from hearth.checkpoints.checkpoint_folder import CheckpointFolder
gate, begun, add_file = threading.Event(), threading.Event(), CheckpointFolder.add_file

def add_late(self, uri, source):
    begun.set()
    assert gate.wait(60)
    return add_file(self, uri, source)

CheckpointFolder.add_file = add_late
"""


@pytest.fixture
def ranks(torch_ranks, monkeypatch):  # noqa: F811
    def start(program, folder, world=2, backend="hearth"):
        begin = ranks_of_torch.START.replace('"hearth", timeout', f'"{backend}", timeout')
        monkeypatch.setattr(ranks_of_torch, "START", begin)
        whole = CONTEXT + GATE + SHARDED + program
        # Optimizers import torch._dynamo, which takes longer than the tested steps.
        case = f'["{folder}"]'
        torch_ranks.append(Ranks(whole, world=world, case=case, package="torch._dynamo"))
        return torch_ranks[-1]

    return start


def names(folder):
    return sorted(os.listdir(folder))


@pytest.fixture
def stored(request, tmp_path):
    """A folder's URI, and a function that lists the folder."""
    if request.param == "webhdfs":
        with WebHdfs() as server:
            files = server.files
            yield f"{server.uri}/run", lambda: sorted({name.split("/")[2] for name in files})
    else:
        yield f"{request.param}{tmp_path}/run", lambda: names(tmp_path / "run")


@needs_fsdp2
@pytest.mark.parametrize(
    ("stored", "backend"),
    [("", "gloo"), ("local://", "hearth"), ("webhdfs", "hearth")],
    indirect=["stored"],
)
def test_the_state_of_the_call_is_written_while_the_ranks_train_on(ranks, stored, backend):
    save = """
step(model, optimizer, 1)
saved = whole(model)
ctx.checkpoint(1, model=model, optimizer=optimizer, data={"batch": 1}, background=True)
for number in range(2, 6):
    step(model, optimizer, number)
begun.wait()
sealed = glob.glob(folders[0].removeprefix("local://") + "/checkpoint*/seal.json")
say([saved, whole(model) != saved, ctx.mgr.commits, sealed])
dist.destroy_process_group()
gate.set()
ctx.end()
say("written")
"""
    load = """
for parameter in model.parameters():
    torch.nn.init.zeros_(parameter)
say([ctx.restore(model=model, optimizer=optimizer, data={}), whole(model)])
"""
    folder, listed = stored
    group = ranks(save, folder, backend=backend)
    first, second = said(group)
    assert first == second
    assert first[1:] == [True, 0, []]
    assert said(group) == ["written"] * 2
    assert listed() == ["checkpoint-000001-step-1"]
    for found, values in said(ranks(load, folder, world=3), 3):
        assert found == 1
        for value, expected in zip(values, first[0], strict=True):
            torch.testing.assert_close(torch.tensor(value), torch.tensor(expected))


@needs_fsdp2
def test_the_newest_are_kept_and_a_failure_of_one_rank_is_reported_to_all(ranks, tmp_path):
    program = """
def refuse(self, uri, source):
    raise OSError("no space left")

gate.set()
for number in range(1, 5):
    step(model, optimizer, number)
    ctx.checkpoint(number, model=model, optimizer=optimizer, background=True)
ctx.restore(model=model)
say(ctx.mgr.commits)
if rank == 1:
    CheckpointFolder.add_file = refuse
ctx.checkpoint(5, model=model, background=True)
say(attempt(lambda: ctx.checkpoint(6, model=model, background=True)))
CheckpointFolder.add_file = add_file
ctx.checkpoint(7, model=model, background=True)
ctx.restore(model=model)
say(ctx.mgr.commits)
if rank == 1:
    CheckpointFolder.add_file = refuse
ctx.checkpoint(8, model=model, background=True)
say(attempt(ctx.end))
"""
    group = ranks(program, tmp_path / "run")
    assert said(group) == [4, 4]
    failed = (
        "ResourceExhaustedError: the checkpoint of step 5, in the background: rank 1: no space left"
    )
    assert said(group) == [failed] * 2
    assert said(group) == [5, 5]
    assert said(group) == ["ResourceExhaustedError: rank 1: no space left"] * 2
    assert names(tmp_path / "run") == ["checkpoint-000004-step-4", "checkpoint-000005-step-7"]


@pytest.mark.parametrize("killed", [0, 1])
def test_a_rank_that_is_killed_meanwhile_leaves_the_older_checkpoint(ranks, tmp_path, killed):
    program = """
say(ctx.restore(model=model))
ctx.checkpoint(1, model=model)
ctx.checkpoint(2, model=model, background=True)
begun.wait()
if rank == KILLED:
    os.kill(os.getpid(), signal.SIGKILL)
gate.set()
say(attempt(ctx.end) is not None)
""".replace("KILLED", str(killed), 1)
    group = ranks(program, tmp_path)
    assert said(group) == [None, None]
    assert group.say(1 - killed) is True
    again = """
say(ctx.restore(model=model))
gate.set()
ctx.checkpoint(2, model=model, background=True)
ctx.end()
say(ctx.mgr.warnings)
"""
    group = ranks(again, tmp_path)
    assert said(group) == [1, 1]
    assert said(group) == [[], []]
    assert names(tmp_path) == ["checkpoint-000001-step-1", "checkpoint-000002-step-2"]
