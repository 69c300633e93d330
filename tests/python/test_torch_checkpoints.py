"""ctx.checkpoint() and ctx.restore() on ranks that are plain processes, without Spark."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
from pathlib import Path

import pytest
import torch
import torch_ranks as ranks_of_torch
from torch_ranks import Ranks, torch_ranks  # noqa: F401

from hearth import HearthError
from hearth.checkpoints.checkpoint_folder import CheckpointFolder
from hearth.checkpoints.seal import Part
from hearth.torch.context import TorchContext

CONTEXT = """
from hearth.torch.context import TorchContext

class Manager:
    def __init__(self):
        self.commits, self.warnings = 0, []
    def note_commit(self):
        self.commits += 1
    def warn(self, text):
        self.warnings.append(text)

folders = json.loads(case)
ctx = TorchContext(
    node_id=rank, role="worker", index=rank, cluster_spec={"worker": ["127.0.0.1:1"] * world},
    default_fs="file://", working_dir="/", mgr=Manager(),
    checkpoint_dir=folders[min(rank, len(folders) - 1)],
)

def make(seed=0):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout())
    return model, torch.optim.Adam(model.parameters(), lr=0.1)

def train(model, optimizer, first, last):
    for step in range(first, last):
        optimizer.zero_grad()
        rows = torch.full((2, 4), float(step)) + torch.arange(2.0)[:, None]
        model(rows).square().sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()

def bits(*modules):
    return [t.tolist() for m in modules for t in m.state_dict().values()]

def attempt(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""


@pytest.fixture
def ranks(torch_ranks, monkeypatch):  # noqa: F811
    def start(program, *folders, world=2, backend="hearth"):
        begin = ranks_of_torch.START.replace('"hearth", timeout', f'"{backend}", timeout')
        monkeypatch.setattr(ranks_of_torch, "START", begin)
        case = json.dumps([str(folder) for folder in folders])
        # Optimizers import it, which takes longer than what is tested here.
        package = "torch._dynamo"
        torch_ranks.append(Ranks(CONTEXT + program, world=world, case=case, package=package))
        return torch_ranks[-1]

    return start


def said(group, world=2):
    return [group.say(rank) for rank in range(world)]


class Manager:
    def __init__(self):
        self.commits, self.warnings = 0, []

    def note_commit(self):
        self.commits += 1

    def warn(self, text):
        self.warnings.append(text)


def alone(folder, **values):
    """The context of a program of one rank."""
    known = {"role": "worker", "cluster_spec": {"worker": ["127.0.0.1:1"]}, "working_dir": "/"}
    return TorchContext(
        node_id=0,
        index=0,
        default_fs="file://",
        mgr=Manager(),
        checkpoint_dir=str(folder),
        **{**known, **values},
    )


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
    assert resumed[0][4] != resumed[1][4]  # each rank has random numbers of its own


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


def test_all_ranks_restore_what_rank_0_has_found(ranks, tmp_path):
    for rank, step in enumerate((5, 9)):
        model = torch.nn.Linear(1, 1)
        torch.nn.init.constant_(model.weight, float(step))
        alone(tmp_path / str(rank)).checkpoint(step, model=model)
    program = """
model = torch.nn.Linear(1, 1)
say([ctx.restore(model=model), model.weight.item()])
"""
    assert said(ranks(program, tmp_path / "0", tmp_path / "1")) == [[5, 5.0]] * 2
    assert said(ranks(program, tmp_path / "none", tmp_path / "1"))[1][0] is None


def test_ranks_that_disagree_are_told_so_and_nothing_is_written(ranks, tmp_path):
    program = """
model, optimizer = make()
say(attempt(lambda: ctx.checkpoint(5 + rank, model=model)))
say(attempt(lambda: ctx.checkpoint(5, model=model, **({"extra": {}} if rank else {}))))
say(attempt(lambda: ctx.checkpoint(5, model=model, data={"batch": rank})))
say(attempt(lambda: ctx.checkpoint(5, model=model, more=7 if rank else {})))
say(attempt(lambda: ctx.restore(**{"model" if rank else "other": model})))
say(attempt(lambda: ctx.checkpoint(5, model=model)))
"""
    group = ranks(program, tmp_path / "run")
    for words in (
        'got another step or other parts on rank 1 than on rank 0 ([6, "model"], not [5, "model"])',
        "got another step or other parts on rank 1",
        "the state of 'data' is another on rank 1 than on rank 0",
        "rank 1: 'more' is a int, which has no state_dict()",
        "restore() got other parts on rank 1",
    ):
        told = said(group)
        assert told[0] == told[1]
        assert words in told[0]
        assert not (tmp_path / "run").exists()
    assert said(group) == [None, None]


def test_where_rank_0_cannot_write_all_ranks_are_told_and_go_on(ranks, tmp_path):
    (tmp_path / "file").write_text("no folder")
    program = """
model, optimizer = make()
say(attempt(lambda: ctx.checkpoint(5, model=model)))
ctx.checkpoint(5, model=model, folder=folders[0] + ".more")
say([ctx.restore(model=model, folder=folders[0] + ".more"), ctx.mgr.commits])
"""
    group = ranks(program, tmp_path / "file")
    told = said(group)
    assert "cannot be written to file://" in told[0]
    assert told[0].startswith("HearthError: rank 0: ")
    assert told[0] == told[1]
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


def test_a_damaged_checkpoint_is_skipped_with_a_warning_to_the_driver(tmp_path):
    ctx, model = alone(tmp_path), torch.nn.Linear(1, 1)
    ctx.checkpoint(1, model=model)
    ctx.checkpoint(2, model=model)
    (tmp_path / "checkpoint-000002-step-2" / "model.pt").write_bytes(b"short")
    assert ctx.restore(model=model) == 1
    (line,) = ctx.mgr.warnings
    assert "checkpoint-000002-step-2 is not whole and is skipped: model.pt has 5 bytes" in line
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
    with pytest.raises(HearthError, match=r"weight is \[2, 3\] in it and \[5, 3\] here"):
        ctx.restore(model=torch.nn.Linear(3, 5), more=more)
    ctx.checkpoint(2, model=torch.nn.Linear(3, 2), optimizer=torch.optim.SGD(other.parameters()))
    with pytest.raises(HearthError, match=r"groups of \[2\] parameters in it and of \[1\] here"):
        ctx.restore(optimizer=torch.optim.SGD([other[0].weight]), more=None)
    assert more == {"epoch": 0}


def test_parts_that_were_saved_by_separate_calls_are_told_by_their_steps(tmp_path):
    ctx, model = alone(tmp_path), torch.nn.Linear(1, 1)
    ctx.checkpoint(10, model=model)
    ctx.checkpoint(12, data={"batch": 12})
    with pytest.raises(HearthError) as found:
        ctx.restore(model=model, data={})
    words = "has data of step 12, but no 'model'; the newest that has it is of step 10"
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
    """torch's protocol, and nothing else."""

    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        if state.get("refused"):
            raise RuntimeError("no\nsuch state")
        self.state = state


def test_anything_with_a_state_dict_comes_back_as_it_was(tmp_path):
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
            r"custom\['a'\]\[0\] is a PosixPath, which could not be loaded",
        ),
        (Stateful({"a": Stateful}), r"custom\['a'\] is a type"),
        (Stateful({Path("x"): 1}), "the key PosixPath"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(tmp_path, part, words):
    with pytest.raises(HearthError, match=words):
        alone(tmp_path / "run").checkpoint(1, custom=part)
    assert not (tmp_path / "run").exists()


def test_a_state_that_a_part_refuses_is_told_in_a_line(tmp_path):
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
        HearthError, match=r"custom.pt cannot be loaded: it holds more than plain data"
    ):
        alone("run", working_dir=str(tmp_path)).restore(custom=Stateful({}))
    assert not Path("made").exists()
    assert pickle.loads(pickle.dumps(Malicious())) is None  # it would have
    assert Path("made").exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"step": -1, "model": {}}, "the step is -1"),
        ({"step": 1.5, "model": {}}, "the step is 1.5"),
        ({"step": 1}, "nothing to save or restore"),
        ({"step": 1, "model": None}, "nothing to save or restore"),
        ({"step": 1, "keep": 0, "model": {}}, "keep=0 would keep no checkpoint"),
        ({"step": 1, "random": {}}, "cannot be named 'random'"),
        ({"step": 1, "../x": {}}, "cannot be named '../x'"),
    ],
)
def test_wrong_arguments_are_told(tmp_path, given, words):
    with pytest.raises(HearthError, match=words):
        alone(tmp_path).checkpoint(**given)


def test_without_a_folder_a_group_or_a_rank_an_error_says_what_to_do(tmp_path):
    with pytest.raises(HearthError, match="checkpoint_dir=URI"):
        alone("").checkpoint(1, model={})
    two = alone(tmp_path, cluster_spec={"worker": ["127.0.0.1:1"] * 2})
    with pytest.raises(HearthError, match=r"calls of all 2 ranks: call .*init_process_group"):
        two.restore(model={})
    spec = {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}
    with pytest.raises(HearthError, match="this node is none of them"):
        alone(tmp_path, role="ps", cluster_spec=spec).restore(model={})


SHARDED = """
from torch.distributed.fsdp import fully_shard
model, optimizer = make()
fully_shard(model[0]); fully_shard(model)
model[1].momentum = None
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

def step(model, optimizer, number):
    optimizer.zero_grad()
    model(torch.arange(8.0).reshape(2, 4) + number).square().sum().backward()
    optimizer.step()

def whole(model):
    return [t.full_tensor().tolist() if hasattr(t, "full_tensor") else t.tolist()
            for t in model.state_dict().values()]
"""


@pytest.mark.parametrize("world", [2, 3])
def test_shards_are_restored_by_as_many_and_by_other_ranks(ranks, tmp_path, world):
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
    (first, second) = said(ranks(SHARDED + save, tmp_path))
    assert first == second
    loaded = said(ranks(SHARDED + load, tmp_path, world=world), world)
    for found, values in loaded:
        assert found == 1
        for value, expected in zip(values, first, strict=True):
            torch.testing.assert_close(torch.tensor(value), torch.tensor(expected))


def test_shards_of_another_model_or_of_a_missing_file_are_told(ranks, tmp_path):
    program = """
step(model, optimizer, 1)
ctx.checkpoint(1, model=model, optimizer=optimizer)
other = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 3))
fully_shard(other)
say(attempt(lambda: ctx.restore(model=other)))
say(attempt(lambda: ctx.restore(model=torch.nn.Linear(4, 3))))
say(attempt(lambda: ctx.checkpoint(2, optimizer=optimizer)))
say(attempt(lambda: ctx.checkpoint(2, model=model, folder="memory://box")))
dist.barrier()
if rank == 0:
    os.unlink(folders[0] + "/checkpoint-000001-step-1/__1_0.distcp")
say([attempt(lambda: ctx.restore(model=model)), ctx.mgr.warnings])
"""
    group = ranks(SHARDED + program, tmp_path)
    for words in (
        "it is of another 'model': it has model.1.num_batches_tracked, model.1.running_mean",
        "'model' is sharded in file://",
        "the parameters of 'optimizer' are sharded: give their module with it",
        "to a folder that all hosts see by its path, not to memory://box",
    ):
        told = said(group)
        assert told[0] == told[1]
        assert words in told[0], told[0]
    first, second = said(group)
    assert (first[0], second) == (None, [None, []])
    assert "__1_0.distcp is missing" in first[1][0]


def test_metadata_of_shards_with_code_in_it_is_not_run(tmp_path, monkeypatch):
    from hearth.torch.sharded_states import _Reader

    monkeypatch.chdir(tmp_path)
    (tmp_path / ".metadata").write_bytes(pickle.dumps(Malicious()))
    with pytest.raises(ValueError, match=r"names posix\.mkdir, which is no part of metadata"):
        _Reader(str(tmp_path)).read_metadata()
    assert not Path("made").exists()


@pytest.mark.parametrize("backend", ["hearth", "gloo"])
def test_metrics_are_reduced_by_weights(ranks, tmp_path, backend):
    program = """
say(attempt(lambda: ctx.reduce_metrics(
    {"loss": torch.tensor(1.0 + rank), "share": 0.25 * rank}, weight=1 + 2 * rank)))
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
    told = said(group)
    assert told[0] == told[1]
    assert "other names on rank 1 than on rank 0: of0, of1 on one of them alone" in told[0]
    told = said(group)
    assert told[0] == told[1]
    assert "reduce_metrics() on rank 1: 'loss' is a Tensor of shape [2], not one number" in told[0]
    assert said(group) == [{f"{i}" * 50: i for i in range(100)}] * 2
