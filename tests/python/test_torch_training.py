"""The epochs of TorchEstimator on one and on two ranks, without Spark."""

from __future__ import annotations

import copy
import dataclasses
from functools import partial

import pytest
from dataset_ranks import partitions_of, rank_dataset
from torch_ranks import Ranks, torch_ranks

from hearth.ml.training_spec import TrainingCode, TrainingSpec

torch = pytest.importorskip("torch")
ranks = torch_ranks
nn = torch.nn
mse = nn.functional.mse_loss


def make_line(width=1):
    return nn.Linear(1, width)


class Two(nn.Module):
    """A module with two inputs and two outputs."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x, z):
        found = self.layer(torch.cat([x, z], 1))
        return found[:, :1], found[:, 1:]


def code(model=make_line, loss=mse, optimizer=torch.optim.SGD, **more):
    return TrainingCode(model, loss, optimizer, **more)


def spec(**more):
    given = {"learning_rate": 0.1, "epochs": 3, "batch_size": 8, "seed": 3}
    return dataclasses.replace(TrainingSpec(("x",), ("y",), **given), **more)


def loader(rows=40, rank=0, world=1, **options):
    from hearth.data.options import LoaderOptions
    from hearth.torch.loader import TensorLoader

    columns = {
        "x": lambda i: [i / 20.0],
        "z": lambda i: [1.0 - i / 40.0],
        "y": lambda i: [i / 10.0 + 1],
        "w": lambda i: float(i % 3),
    }
    made = LoaderOptions(**{"batch_size": 8, "uneven": "weight", "seed": 3, **options})
    parts = partitions_of(*([rows] if isinstance(rows, int) else rows), **columns)
    return TensorLoader(rank_dataset(parts, rank, world), made)


def trainer(given=None, **more):
    from hearth.ml.torch_training import Trainer

    return Trainer(given or code(), spec(**more), torch.device("cpu"))


def weights(one):
    return [value.detach().clone() for value in one.model.parameters()]


def test_an_epoch_is_that_of_a_loop_written_by_hand():
    one = trainer()
    model = make_line()
    model.load_state_dict(one.model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    one.fit(loader(37))
    losses = []
    rows = loader(37)
    for _ in range(3):
        total = 0.0
        for batch in rows:
            loss = mse(model(batch["x"].float()), batch["y"].float())
            optimizer.zero_grad()
            # The last minibatch of an epoch is smaller, and its loss counts by its rows.
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch["x"])
        losses.append(total / 37)
    assert [row["loss"] for row in one.history] == pytest.approx(losses, rel=1e-5)
    for own, other in zip(weights(one), model.parameters(), strict=True):
        torch.testing.assert_close(own, other.detach())
    assert one.history[0]["rows"] == 37 and one.history[0]["lr"] == 0.1


def test_accumulated_minibatches_are_one_of_all_their_rows():
    """Two minibatches of 8 per step, one in the last, against single minibatches of 16 rows."""
    small = trainer(accumulation=2, shuffle=False)
    small.fit(loader(40, shuffle=False))
    large = trainer(batch_size=16)
    large.fit(loader(40, shuffle=False, batch_size=16))
    assert small.run["step"] == large.run["step"] == 9
    for own, other in zip(weights(small), weights(large), strict=True):
        torch.testing.assert_close(own, other)


def test_weights_of_rows_make_the_weighted_mean():
    one = trainer(weight="w", epochs=1, batch_size=8)
    with torch.no_grad():
        before = weights(one)
    one.fit(loader(8, shuffle=False))
    x = torch.tensor([[i / 20.0] for i in range(8)])
    y = torch.tensor([[i / 10.0 + 1] for i in range(8)])
    w = torch.tensor([float(i % 3) for i in range(8)])
    found = x * before[0].T + before[1]
    loss = ((found - y)[:, 0].square() * w).sum() / w.sum()
    assert one.history[0]["loss"] == pytest.approx(loss.item(), rel=1e-5)
    no_rows = partial(mse, reduction="mean")
    with pytest.raises(ValueError, match="a loss must return a number for each row"):
        trainer(code(loss=lambda a, b: no_rows(a, b)), weight="w").fit(loader(8))
    with pytest.raises(ValueError, match=r"column 'x' has the weight -?\d.*at least 0"):
        negative = loader(8, map=lambda batch: {**batch, "x": batch["x"][:, 0] - 1})
        trainer(weight="x").fit(negative)
    with pytest.raises(ValueError, match="'w' has the weight 0 for each of 8 rows"):
        trainer(weight="w").fit(loader(8, map=lambda batch: {**batch, "w": batch["w"] * 0}))


def test_several_inputs_outputs_and_losses():
    given = dataclasses.replace(
        spec(), inputs=("x", "z"), labels=("y", "z"), loss_weights=(1.0, 0.5)
    )
    from hearth.ml.torch_training import Trainer

    one = Trainer(code(Two, [mse, nn.L1Loss()]), given, torch.device("cpu"))
    one.fit(loader())
    row = one.history[-1]
    assert row["loss"] == pytest.approx(row["y_loss"] + 0.5 * row["z_loss"])
    with pytest.raises(ValueError, match=r"3 losses for 2 label columns \(y, z\)"):
        Trainer(code(Two, [mse] * 3), given, torch.device("cpu"))


def test_metrics_of_validation_count_each_row_once():
    given = code(metrics={"mae": nn.functional.l1_loss, "square": MeanSquare})
    one = trainer(given, validates=True)
    one.fit(loader(), loader(21, shuffle=False))
    row = one.history[-1]
    x = torch.arange(21)[:, None]
    with torch.no_grad():
        found = one.model(x / 20.0)
    errors = found - (x / 10.0 + 1)
    assert row["val_mae"] == pytest.approx(errors.abs().mean().item(), rel=1e-5)
    assert row["val_square"] == pytest.approx(errors.square().mean().item(), rel=1e-5)


class MeanSquare(nn.Module):
    """A metric in the style of torchmetrics: a module that computes a tensor."""

    def reset(self):
        self.sum, self.count = torch.tensor(0.0), 0

    def update(self, preds, target):
        self.sum += (preds - target).square().sum()
        self.count += target.numel()

    def compute(self):
        return self.sum / self.count


def test_metrics_that_are_modules_are_taken_as_instances_and_as_classes():
    own = MeanSquare()
    one = trainer(code(metrics=[own, partial(MeanSquare)]))
    with pytest.raises(ValueError, match="two metrics have one name"):
        one.fit(loader())
    one = trainer(code(metrics={"mse": own, "again": MeanSquare}))
    one.fit(loader())
    row = one.history[-1]
    assert row["mse"] == row["again"] == pytest.approx(row["loss"], rel=1e-4)
    assert not hasattr(own, "count")  # each pass over the rows uses a copy


@pytest.mark.parametrize("how", [{"clip_norm": 0.01}, {"clip_value": 0.001}])
def test_gradients_are_clipped(how):
    one = trainer(epochs=1, **how)
    before = weights(one)
    one.fit(loader(8))
    moved = torch.cat([(a - b).reshape(-1) for a, b in zip(before, weights(one), strict=True)])
    if "clip_norm" in how:
        assert moved.norm().item() == pytest.approx(0.1 * 0.01, rel=1e-3)
    else:
        assert moved.abs().max().item() == pytest.approx(0.1 * 0.001, rel=1e-3)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_trains_and_keeps_weights_of_float32(precision):
    kinds = []

    def loss(outputs, labels):
        kinds.append(outputs.dtype)
        return mse(outputs, labels)

    one = trainer(code(loss=loss), precision=precision, epochs=8)
    one.fit(loader())
    assert set(kinds) == {torch.bfloat16 if precision == "bf16" else torch.float16}
    assert {value.dtype for value in one.model.parameters()} == {torch.float32}
    assert one.history[-1]["loss"] < one.history[0]["loss"] / 2


def test_early_stopping_goes_back_to_the_best_epoch():
    def worsen(one, row):
        one.optimizer.param_groups[0]["lr"] = -0.5
        states.append(weights(one))

    states = []
    one = trainer(code(callbacks=[worsen]), epochs=20, patience=2, validates=True)
    one.fit(loader(), loader(8))
    assert one.run["stopped"] and len(one.history) == 3
    assert one.run["stop"]["best_epoch"] == 0
    for own, other in zip(weights(one), states[0], strict=True):
        assert torch.equal(own, other)
    with pytest.raises(ValueError, match=r"monitor is 'val_f1', but an epoch has epoch, loss"):
        trainer(patience=1, monitor="val_f1").fit(loader())


def test_schedulers_follow_epochs_or_steps_or_a_plateau():
    schedulers = torch.optim.lr_scheduler
    halved = partial(schedulers.StepLR, step_size=1, gamma=0.5)
    one = trainer(code(scheduler=halved))
    one.fit(loader())
    assert [row["lr"] for row in one.history] == [0.1, 0.05, 0.025]
    one = trainer(code(scheduler=halved), scheduler_interval="step", epochs=1)
    one.fit(loader(16))
    assert one.optimizer.param_groups[0]["lr"] == 0.025
    plateau = partial(schedulers.ReduceLROnPlateau, patience=0, threshold=1e9, factor=0.1)
    one = trainer(code(scheduler=plateau), validates=True)
    one.fit(loader(), loader())
    assert [row["lr"] for row in one.history] == pytest.approx([0.1, 0.01, 0.001])


class Calls:
    """Records the calls that it gets; stops the training after the second epoch."""

    def __init__(self):
        self.seen = []

    def on_train_begin(self, one):
        self.seen.append("begin")

    def on_batch_end(self, one):
        self.seen.append("batch")

    def on_epoch_end(self, one, row):
        self.seen.append(row["epoch"])
        if row["epoch"] == 1:
            one.stop()

    def on_train_end(self, one):
        self.seen.append("end")


def test_callbacks_are_called_and_may_stop_the_training():
    calls = Calls()
    trainer(code(callbacks=[calls])).fit(loader(16))
    assert calls.seen == ["begin", "batch", "batch", 0, "batch", "batch", 1, "end"]


class Stopped(Exception):
    """Ends a training in the middle."""


@pytest.mark.parametrize("steps", [5, 7, 10])
def test_a_training_resumes_from_its_parts(steps):
    """Also in the middle of an epoch of 5 steps: its figures still cover the whole epoch."""
    kept = {}

    def keep(one, rows):
        if one.run["step"] == steps:
            states = {k: v if isinstance(v, dict) else v.state_dict() for k, v in parts(one)}
            kept.update(copy.deepcopy({**states, "data": rows.state_dict()}))
            raise Stopped

    def parts(one):
        return [(name, part) for name, part in one.parts().items() if part is not None]

    given = code(optimizer=torch.optim.Adam, metrics=[nn.functional.l1_loss])
    more = {"epochs": 3, "patience": 9, "checkpoint_steps": 1}
    whole, first, second = (trainer(given, **more) for _ in range(3))
    whole.fit(loader())
    rows = loader()
    with pytest.raises(Stopped):
        first.fit(rows, None, lambda row: keep(first, rows), lambda: keep(first, rows))
    for name, part in parts(second):
        if isinstance(part, dict):
            part.clear()
            part.update(kept[name])
        else:
            part.load_state_dict(kept[name])
    again = loader()
    again.load_state_dict(kept["data"])
    second.fit(again)
    figures = [[{**row, "seconds": 0} for row in one.history] for one in (whole, second)]
    assert figures[0] == figures[1]
    assert second.run["step"] == 15


def test_a_training_begins_with_the_weights_that_it_is_given():
    from hearth.ml import TorchEstimator
    from hearth.ml.torch_training import Trainer
    from hearth.torch import returned

    given = {"weight": torch.tensor([[7.0]]), "bias": torch.tensor([8.0])}
    stage = TorchEstimator(make_line, mse, torch.optim.SGD, initialModel=given)
    initial = returned.loaded(stage.copy()._initial)
    one = Trainer(code(), spec(learning_rate=0.0), torch.device("cpu"), initial)
    one.fit(loader())
    assert [w.item() for w in weights(one)] == [7.0, 8.0]


def test_a_transformation_changes_batches_and_keeps_the_rows_that_count():
    """12 rows in batches of 8, on a rank that takes as many steps as another one with 20 rows."""
    from hearth.ml.training_spec import loader_map

    seen = []

    def double(batch, seeds):
        seen.append(len(seeds))
        return {"x": batch["x"] * 2, "y": batch["y"]}

    one = trainer(epochs=1, learning_rate=0.0)
    one.fit(loader([20, 12], 1, 2, map=loader_map(double), shuffle=False))
    assert one.history[0]["rows"] == 12 and seen == [8, 8, 4]


def test_errors_are_reported_in_one_line():
    flat = code(loss=lambda found, y: mse(found, y[:, 0]))
    with pytest.raises(ValueError, match=r"cannot compare output \[8, 1\] float32 with label \[8"):
        trainer(flat).fit(loader())
    with pytest.raises(ValueError, match=r"the model does not accept x \[8, 1\] float32: "):
        trainer(code(lambda: nn.Linear(3, 1))).fit(loader())
    with pytest.raises(ValueError, match=r"the loss is (nan|inf) in step"):
        trainer(learning_rate=1e20, epochs=9).fit(loader())
    with pytest.raises(ValueError, match="there are no rows to validate on"):
        trainer(validates=True).fit(loader(), [])
    with pytest.raises(ValueError, match="a minibatch has no 'y', only x"):
        trainer().fit(loader(map=lambda batch: {"x": batch["x"]}))


TWO_RANKS = """
sys.path.insert(0, "tests/python")
import test_torch_training as own

accumulation, stop_on = json.loads(case)

def stop(one, row):
    if rank == stop_on and row["epoch"] == 1:
        one.stop()

one = own.trainer(own.code(callbacks=[stop]), accumulation=accumulation, validates=True)
rows = own.loader([22, 15], rank, world, shuffle=False)
held = own.loader([9, 2], rank, world, shuffle=False)
one.fit(rows, held)
say([[w.tolist() for w in own.weights(one)], one.history, one.run["step"]])
"""


@pytest.mark.torch
@pytest.mark.parametrize(("accumulation", "stop_on"), [(3, -1), (2, 1)])
def test_ranks_with_different_rows_train_on_the_mean_over_all_of_them(ranks, accumulation, stop_on):
    """22 and 15 rows: three minibatches each, of which rank 1's last has only repeated rows."""
    ranks.append(Ranks(TWO_RANKS, case=f"[{accumulation}, {stop_on}]"))
    results = [ranks[0].say(rank) for rank in (0, 1)]
    assert results[0][0] == results[1][0]
    figures = [[{**row, "seconds": 0} for row in result[1]] for result in results]
    assert figures[0] == figures[1]
    assert [row["rows"] for row in figures[0]] == [37] * (2 if stop_on == 1 else 3)
    if accumulation == 3:
        alone = trainer()
        for _ in range(3):
            x = torch.tensor([[i / 20.0] for i in range(37)])
            mse(alone.model(x), x * 2 + 1).backward()
            alone.optimizer.step()
            alone.optimizer.zero_grad()
        for own, other in zip(weights(alone), results[0][0], strict=True):
            torch.testing.assert_close(own, torch.tensor(other), rtol=1e-5, atol=1e-6)
    else:
        assert results[0][2] == 4  # two steps in each epoch
