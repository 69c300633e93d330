"""TorchEstimator's Params on executors: validation, weights, concurrent trials, a killed rank."""

from __future__ import annotations

import os
import re
import signal

import pytest
import torch
from killed_trials import KillsOnce as KillsInATrial
from killed_trials import metrics_of
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.feature import SQLTransformer, VectorAssembler
from pyspark.ml.pipeline import Pipeline
from pyspark.ml.tuning import ParamGridBuilder, TrainValidationSplit

from hearth.ml import TorchEstimator

mse = torch.nn.functional.mse_loss


def make_line(hidden=0):
    layers = [torch.nn.Linear(2, hidden or 1)]
    return torch.nn.Sequential(*layers, *([torch.nn.Linear(hidden, 1)] if hidden else []))


class Two(torch.nn.Module):
    """Inputs are a vector and a number; outputs are their sum and the number."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, vector, number):
        return self.layer(torch.cat([vector, number[:, None]], 1))[:, 0], number


def rows(spark, count=240):
    frame = spark.range(0, count, 1, 4).selectExpr("id", "id / 240 a", "1 - id / 480 b")
    frame = VectorAssembler(inputCols=["a", "b"], outputCol="features").transform(frame)
    return frame.selectExpr("features", "array(a + b) y", "id % 8 = 0 held", "a number", "b")


def test_validation_stops_early_and_is_in_the_summary(spark, capfd):
    stage = TorchEstimator(
        make_line, mse, torch.optim.Adam, metrics={"mae": torch.nn.functional.l1_loss},
        labelCol="y", epochs=60, learningRate=0.1, numWorkers=2, batchSize=16,
        validationIndicatorCol="held", patience=2, minDelta=1e-3, gradientClipNorm=5.0,
        accumulationSteps=2, verbose=True,
    )  # fmt: skip
    model = stage.fit(rows(spark))
    assert re.search(r"\[.*\] epoch 1 of 60: loss \d", capfd.readouterr().err)
    summary = model.summary
    assert summary.stopped_early and summary.totalIterations < 60
    assert {row["rows"] for row in model.history} == {210}
    best = model.history[summary.best_epoch]
    assert best["val_loss"] <= min(row["val_loss"] for row in model.history) + 1e-3
    assert best["val_mae"] < 0.3
    frame = summary.frame(spark)
    assert frame.columns[:2] == ["epoch", "loss"] and frame.count() == len(model.history)
    assert model.transform(rows(spark)).first().output is not None


def test_two_inputs_two_outputs_and_weights_of_rows(spark):
    stage = TorchEstimator(
        Two, [mse, torch.nn.L1Loss()], torch.optim.Adam, inputCols=["features", "number"],
        labelCols=["b", "number"], lossWeights=[1.0, 0.0], weightCol="weight", epochs=8,
        learningRate=0.05, validationFraction=0.25, outputCols=["sum", "again"],
    )  # fmt: skip
    # Rows with weight 0 have labels that no line fits.
    frame = rows(spark).selectExpr(
        "features", "number", "if(held, 99d, b) b", "if(held, 0d, 1d) weight"
    )
    model = stage.fit(frame)
    row = model.history[-1]
    assert row["loss"] == pytest.approx(row["b_loss"]) and row["b_loss"] < 0.1
    assert 120 < row["rows"] < 220 and row["number_loss"] == 0
    found = model.transform(frame)
    assert found.dtypes[-2:] == [("sum", "float"), ("again", "float")]


@pytest.mark.long
def test_trials_of_a_grid_run_concurrently_with_separate_checkpoints(spark, tmp_path):
    stage = TorchEstimator(
        make_line, mse, torch.optim.Adam, labelCol="y", epochs=3, outputCol="found",
        learningRate=0.05, storeDir=f"file://{tmp_path}",
    )  # fmt: skip
    flat = SQLTransformer(statement="SELECT *, double(found[0]) prediction, y[0] s FROM __THIS__")
    grid = ParamGridBuilder().addGrid(stage.modelArgs, [{"hidden": 0}, {"hidden": 8}])
    split = TrainValidationSplit(
        estimator=Pipeline(stages=[stage, flat]),
        estimatorParamMaps=grid.build(),
        evaluator=RegressionEvaluator(labelCol="s"),
        parallelism=2,
        seed=3,
    )
    best = split.fit(rows(spark)).bestModel.stages[0]
    assert best.getOrDefault("modelArgs") in ({"hidden": 0}, {"hidden": 8})
    assert len(best.state_dict()) == (4 if best.getOrDefault("modelArgs")["hidden"] else 2)
    assert len(list(tmp_path.glob("fit-TorchModel_*"))) == 3  # two trials and the refit of the best


class KillsOnce:
    """Kills rank 1 once, at the start of its third epoch."""

    def __init__(self, folder):
        self.folder = folder

    def on_epoch_begin(self, trainer):
        import torch.distributed as dist

        mark = os.path.join(self.folder, "killed")
        with open(os.path.join(self.folder, f"epochs-{dist.get_rank()}"), "a") as file:
            file.write(f"{trainer.epoch}\n")
        if trainer.epoch == 2 and dist.get_rank() == 1 and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_rank_and_a_later_fit_resume_from_the_folder(spark, tmp_path):
    given = dict(
        labelCol="y", learningRate=0.05, workers=2, storeDir=f"file://{tmp_path}/run", seed=4
    )
    kills = KillsOnce(str(tmp_path))
    stage = TorchEstimator(make_line, mse, torch.optim.Adam, callbacks=[kills], **given)
    model = stage.setEpochs(4).fit(rows(spark))
    assert (tmp_path / "killed").exists()
    assert [row["epoch"] for row in model.history] == [0, 1, 2, 3]
    assert (tmp_path / "epochs-1").read_text().split() == ["0", "1", "2", "2", "3"]
    longer = stage.setEpochs(5).fit(rows(spark))
    assert longer.history[:4] == model.history and len(longer.history) == 5


class KillsInSecondEpoch:
    def __init__(self, kill):
        self.kill = kill

    def on_epoch_begin(self, trainer):
        if trainer.epoch == 1:
            self.kill()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("killed", ["rank", "executor"])
def test_a_cross_validation_that_loses_a_process_finds_the_same(spark, tmp_path, killed):
    frame = rows(spark).selectExpr("features", "y", "y[0] s").cache()

    def metrics(victim):
        kills = KillsInATrial(tmp_path, victim)
        stage = TorchEstimator(
            make_line, mse, torch.optim.Adam, callbacks=[KillsInSecondEpoch(kills)], labelCol="y",
            epochs=3, learningRate=0.05, storeDir=f"file://{tmp_path}/{victim}",
        )  # fmt: skip
        found = metrics_of(stage, frame, (stage.modelArgs, [{"hidden": 8}]))
        assert os.path.exists(kills.mark) == (victim != "none")
        return found

    assert metrics(killed) == pytest.approx(metrics("none"))
