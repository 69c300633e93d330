"""ctx.checkpoint(background=True) writes the state of the call while the program continues."""

from __future__ import annotations

import threading

import pytest
import torch
from checkpoint_ranks import alone

from hearth import HearthError
from hearth.torch import checkpoint_files
from hearth.torch.part_states import copied


@pytest.fixture
def gate(monkeypatch):
    """An event; background checkpoints are not written before it is set."""
    gate, write = threading.Event(), checkpoint_files.write_whole

    def write_late(*args):
        if threading.current_thread() is not threading.main_thread():
            assert gate.wait(30)
        return write(*args)

    monkeypatch.setattr(checkpoint_files, "write_whole", write_late)
    return gate


def test_a_background_save_has_the_state_of_the_call(tmp_path, gate):
    ctx, model = alone(tmp_path), torch.nn.Linear(1, 1)
    torch.nn.init.constant_(model.weight, 3)
    ctx.checkpoint(1, model=model, background=True)
    torch.nn.init.constant_(model.weight, 4)
    assert not tmp_path.joinpath("checkpoint-000001-step-1").exists()
    assert ctx.mgr.commits == 0
    gate.set()
    assert ctx.restore(model=model) == 1  # restore() waits for the checkpoint
    assert ctx.mgr.commits == 1
    assert model.weight.item() == 3


def test_the_next_one_waits_and_older_ones_go(tmp_path, gate):
    ctx, model = alone(tmp_path), torch.nn.Linear(1, 1)
    gate.set()
    for step in range(1, 5):
        ctx.checkpoint(step, model=model, background=True)
    ctx.end()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["checkpoint-000003-step-3", "checkpoint-000004-step-4"]
    assert ctx.mgr.commits == 3


def test_a_failure_is_reported_by_the_next_call_or_at_the_end(tmp_path, gate):
    ctx, model = alone(tmp_path / "folder"), torch.nn.Linear(1, 1)
    ctx.checkpoint(1, model=model)
    ctx.checkpoint(2, model=model, background=True)
    tmp_path.joinpath("folder").rename(tmp_path / "moved")
    tmp_path.joinpath("folder").write_text("no folder")
    gate.set()
    with pytest.raises(HearthError, match="the checkpoint of step 2, in the background: "):
        ctx.checkpoint(3, model=model)
    assert ctx.mgr.commits == 1
    ctx.checkpoint(4, model=model, background=True, folder=str(tmp_path / "moved"))
    ctx.end()
    assert ctx.restore(model=model, folder=str(tmp_path / "moved")) == 4
    ctx.checkpoint(5, model=model, background=True)
    with pytest.raises(HearthError, match="the checkpoint of step 5 cannot be written to"):
        ctx.end()


def test_copies_keep_shared_storage_and_version_names():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    model.register_buffer("tied", model[0].weight.detach())
    state = {"model": model.state_dict(), "steps": [1, (2, "x")], "none": None}
    made = copied(state)
    assert made["model"]["tied"] is made["model"]["0.weight"]
    assert made["model"]["0.weight"] is not state["model"]["0.weight"]
    assert made["model"]._metadata == state["model"]._metadata
    assert made["steps"] == [1, (2, "x")]
    before = made["model"]["0.weight"].clone()
    with torch.no_grad():
        model[0].weight.add_(1)
    assert torch.equal(made["model"]["0.weight"], before)
