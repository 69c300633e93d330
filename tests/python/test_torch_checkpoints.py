"""ctx.checkpoint() and ctx.restore() in a program with one rank."""

from __future__ import annotations

import os
import pickle
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from checkpoint_ranks import alone
from dataset_ranks import loaders, partitions_of

from hearth import HearthError
from hearth.checkpoints.checkpoint_folder import CheckpointFolder
from hearth.checkpoints.seal import Part


def test_a_damaged_checkpoint_is_skipped_with_a_warning_to_the_driver(tmp_path):
    ctx, model = alone(tmp_path), torch.nn.Linear(1, 1)
    ctx.checkpoint(1, model=model)
    ctx.checkpoint(2, model=model)
    (tmp_path / "checkpoint-000002-step-2" / "model.pt").write_bytes(b"short")
    assert ctx.restore(model=model) == 1
    (line,) = ctx.mgr.warnings
    assert "checkpoint-000002-step-2 is damaged and was skipped: model.pt has 5 bytes" in line
    shutil.rmtree(tmp_path)
    assert ctx.restore(model=model) is None


def test_a_checkpoint_of_another_model_is_refused_and_changes_nothing(tmp_path):
    ctx = alone(tmp_path)
    ctx.checkpoint(1, model=torch.nn.Linear(3, 2), more={"epoch": 1})
    other, more = torch.nn.Sequential(torch.nn.Linear(3, 2)), {"epoch": 0}
    with pytest.raises(HearthError) as found:
        ctx.restore(model=other, more=more)
    name = "checkpoint-000001-step-1 does not fit: it is of another 'model': "
    assert f"{name}it lacks 0.bias, 0.weight, and it has bias, weight, which" in str(found.value)
    with pytest.raises(HearthError, match=r"weight is \[2, 3\] there and \[5, 3\] here"):
        ctx.restore(model=torch.nn.Linear(3, 5), more=more)
    ctx.checkpoint(2, model=torch.nn.Linear(3, 2), optimizer=torch.optim.SGD(other.parameters()))
    said = r"its 'optimizer' has groups of \[2\] parameters, but 'optimizer' here has \[1\]"
    with pytest.raises(HearthError, match=said):
        ctx.restore(optimizer=torch.optim.SGD([other[0].weight]), more=None)
    assert more == {"epoch": 0}


def test_parts_that_were_saved_by_separate_calls_are_reported_by_their_steps(tmp_path):
    ctx, model = alone(tmp_path), torch.nn.Linear(1, 1)
    ctx.checkpoint(10, model=model)
    ctx.checkpoint(12, data={"batch": 12})
    with pytest.raises(HearthError) as found:
        ctx.restore(model=model, data={})
    words = "of step 12 has data, but not 'model' (the newest that has it is of step 10)"
    assert words in str(found.value)


def test_model_and_data_of_different_steps_are_an_error(tmp_path):
    ctx, model = alone(tmp_path), torch.nn.Linear(1, 1)
    with pytest.raises(
        HearthError, match=r"model is of step 12 and the state of 'data' of step 10"
    ):
        ctx.checkpoint(12, model=model, data={"step": 10})
    ctx.checkpoint(10, model=model, data={"batch": 10})
    stale = "the step is 12, but the state of 'data' is still that of step 10"
    with pytest.raises(HearthError, match=stale):
        ctx.checkpoint(12, model=model, data={"batch": 10})
    resumed, data = alone(tmp_path), {}
    assert resumed.restore(model=model, data=data) == 10
    with pytest.raises(HearthError, match=stale):
        resumed.checkpoint(12, model=model, data=data)
    resumed.checkpoint(12, model=model, data={"batch": 12})


def test_a_restore_without_the_position_of_a_dataset_is_reported(tmp_path):
    (loader,) = loaders(partitions_of(20), 1)
    next(iter(loader))
    ctx, model = alone(tmp_path), torch.nn.Linear(1, 1)
    ctx.checkpoint(1, model=model, rows=loader, data={"batch": 1})
    ctx.mgr.datasets = SimpleNamespace(names=["train"])
    ctx.restore(model=model, data={})
    ctx.restore(model=model, rows=loader)
    assert ctx.mgr.warnings == []
    ctx.restore(model=model)
    (said,) = ctx.mgr.warnings
    assert "step 1 was restored without a position in dataset 'train'" in said


def with_parts_of_two_steps(folder, **steps):
    there = CheckpointFolder(str(folder), pytest.fail)
    draft = there.begin(12)
    for name in steps:
        with draft.file(f"{name}.pt") as file:
            torch.save({}, file)
    draft.seal({name: Part(step, (f"{name}.pt",)) for name, step in steps.items()}, 1)


def test_a_checkpoint_whose_parts_have_two_steps_is_an_error(tmp_path):
    with_parts_of_two_steps(tmp_path, model=12, data=10, random=12)
    with pytest.raises(HearthError, match=r"'data' is of step 10, others of step 12"):
        alone(tmp_path).restore(model={}, data={})


class Stateful:
    """Implements only torch's protocol Stateful."""

    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        if state.get("refused"):
            raise RuntimeError("no\nsuch state")
        self.state = state


def test_any_object_with_a_state_dict_is_restored(tmp_path):
    ctx = alone(tmp_path)
    state = {
        "list": [1, 2.5, None, True, "ä", b"bytes"],
        "tuple": (1, {"of": torch.arange(3, dtype=torch.bfloat16)}),
        3: float("inf"),
    }
    model = torch.nn.Linear(1, 1)
    scheduler = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(model.parameters()), 3)
    parallel = torch.compile(model)
    ctx.checkpoint(1, custom=Stateful(state), data=Stateful(state), scheduler=scheduler, m=parallel)
    custom, data = Stateful({}), Stateful({})
    assert ctx.restore(custom=custom, data=data, scheduler=scheduler, m=model) == 1
    for each in (custom, data):
        assert repr(each.state) == repr(state)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (7, r"'custom' is a int, which has no state_dict\(\)"),
        (
            Stateful({"a": [Path("x")]}),
            r"custom\['a'\]\[0\] is a PosixPath, which cannot be loaded",
        ),
        (Stateful({"a": Stateful}), r"custom\['a'\] is a type"),
        (Stateful({Path("x"): 1}), "the key PosixPath"),
    ],
)
def test_values_that_cannot_be_loaded_are_not_saved(tmp_path, part, words):
    with pytest.raises(HearthError, match=words):
        alone(tmp_path / "run").checkpoint(1, custom=part)
    assert not (tmp_path / "run").exists()


def test_a_state_that_a_part_refuses_is_reported_in_one_line(tmp_path):
    ctx = alone(tmp_path)
    ctx.checkpoint(1, custom=Stateful({"refused": 1}))
    with pytest.raises(HearthError, match=r"'custom' of .*-step-1 cannot be loaded: no such state"):
        ctx.restore(custom=Stateful({}))


class Malicious:
    def __reduce__(self):
        return os.mkdir, ("made",)


def test_a_sealed_file_with_code_in_it_is_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = CheckpointFolder("run", pytest.fail)
    draft = there.begin(1)
    for name in ("custom", "random"):
        with draft.file(f"{name}.pt") as file:
            torch.save({"state": Malicious()}, file)
    draft.seal({name: Part(1, (f"{name}.pt",)) for name in ("custom", "random")}, 1)
    with pytest.raises(
        HearthError, match=r"custom.pt cannot be loaded: loading its objects could run code"
    ):
        alone("run", working_dir=str(tmp_path)).restore(custom=Stateful({}))
    assert not Path("made").exists()
    assert pickle.loads(pickle.dumps(Malicious())) is None  # loaded by pickle, it would have run
    assert Path("made").exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"step": -1, "model": {}}, "the step is -1"),
        ({"step": 10**18, "model": {}}, "the step is 1000000000000000000"),
        ({"step": 1.5, "model": {}}, "the step is 1.5"),
        ({"step": 1}, "nothing to save or restore"),
        ({"step": 1, "model": None}, "nothing to save or restore"),
        ({"step": 1, "keep": 0, "model": {}}, "keep=0 would keep no checkpoint"),
        ({"step": 1, "random": {}}, "cannot be named 'random'"),
        ({"step": 1, "../x": {}}, "cannot be named '../x'"),
    ],
)
def test_wrong_arguments_are_reported(tmp_path, given, words):
    with pytest.raises(HearthError, match=words):
        alone(tmp_path).checkpoint(**given)


def test_a_missing_folder_group_or_rank_is_reported_with_a_remedy(tmp_path):
    with pytest.raises(HearthError, match="checkpoint_dir=URI"):
        alone("").checkpoint(1, model={})
    two = alone(tmp_path, cluster_spec={"worker": ["127.0.0.1:1"] * 2})
    with pytest.raises(HearthError, match=r"calls of all 2 ranks: call .*init_process_group"):
        two.restore(model={})
    spec = {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}
    with pytest.raises(HearthError, match="this node is not one of them"):
        alone(tmp_path, role="ps", cluster_spec=spec).restore(model={})


def test_metadata_of_shards_with_code_in_it_is_not_run(tmp_path, monkeypatch):
    from hearth.torch.sharded_states import Shards, _Reader

    monkeypatch.chdir(tmp_path)
    (tmp_path / ".metadata").write_bytes(pickle.dumps(Malicious()))
    with pytest.raises(ValueError, match=r"names posix\.mkdir, which metadata does not use"):
        _Reader(Shards(partial(open, mode="rb"), str(tmp_path))).read_metadata()
    assert not Path("made").exists()
