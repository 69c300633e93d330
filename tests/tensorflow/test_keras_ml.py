"""KerasEstimator and KerasModel on executors: two workers, several inputs, saving, resuming."""

from __future__ import annotations

import os
from functools import partial

import pytest
from killed_trials import KillsOnce, metrics_of
from pyspark.sql import functions

from hearth.cluster.errors import NodeError
from hearth.ml import KerasEstimator, KerasModel


def make_line(units=1):
    import keras

    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(units)])


def make_two():
    """A model with two inputs and two outputs."""
    import keras

    number, vector = keras.Input((1,), name="number"), keras.Input((2,), name="vector")
    both = keras.layers.Concatenate()([number, vector])
    outputs = [keras.layers.Dense(1, name=name)(both) for name in ("sum", "difference")]
    return keras.Model([number, vector], outputs)


def rows(spark, count=200):
    frame = spark.range(0, count, 1, 4).selectExpr("id", "id / 100 a", "1 - id / 200 b")
    frame = frame.selectExpr("id", "array(a, b) x", "float(a + b) y", "id % 10 = 0 held")
    return frame.selectExpr("*", "array(x[0]) number", "x vector", "float(x[0] - x[1]) z")


def test_two_workers_stop_early_and_the_model_is_saved_without_code(spark, tmp_path):
    stage = KerasEstimator(
        make_line, "mse", "adam", metrics=["mae"], epochs=40, learningRate=0.05, workers=2,
        batchSize=16, validationCol="held", patience=2, minDelta=1e-3, labelCol="y",
        featuresCol="x",
    )  # fmt: skip
    model = stage.fit(rows(spark))
    assert model.summary.stopped_early and len(model.history) < 40
    best = min(model.history, key=lambda row: row["val_loss"])
    assert best["val_loss"] < model.history[0]["val_loss"] / 2 and best["val_mae"] < 0.5
    assert abs(model.summary.best_epoch - best["epoch"]) <= 2
    assert model.summary.frame(spark).count() == len(model.history)
    found = model.transform(rows(spark))
    assert dict(found.dtypes)["output"] == "array<float>"
    model.write().overwrite().save(str(tmp_path / "model"))
    again = KerasModel.load(str(tmp_path / "model"))
    assert again.history == model.history
    key = functions.col("id")
    assert again.transform(rows(spark)).sort(key).collect() == found.sort(key).collect()


@pytest.mark.long
def test_several_inputs_and_outputs_with_weights_of_rows(spark):
    stage = KerasEstimator(
        make_two, ["mse", "mse"], "adam", epochs=2, learningRate=0.05, batchSize=16,
        inputCols=["number", "vector"], labelCols=["y", "z"], lossWeights=[1.0, 0.5],
        weightCol="weight", outputCols=["sum", "difference"], validationFraction=0.2,
    )  # fmt: skip
    model = stage.fit(rows(spark).withColumn("weight", functions.lit(1.0)))
    assert {"sum_loss", "difference_loss", "val_loss"} <= set(model.history[0])
    found = model.transform(rows(spark))
    assert [kind for _, kind in found.dtypes[-2:]] == ["array<float>"] * 2


def fail_in_third(model, row):
    if row["epoch"] == 2:
        raise RuntimeError("the third epoch is not to be")


@pytest.mark.long
@pytest.mark.parametrize("backend", ["tensorflow", "torch"])
def test_a_failed_fit_resumes_from_its_folder(spark, tmp_path, backend):
    given = dict(
        epochs=4, learningRate=0.05, workers=2, storeDir=f"file://{tmp_path}", inputCols=["x"],
        labelCol="y", backend=backend,
    )  # fmt: skip
    failing = KerasEstimator(make_line, "mse", "adam", callbacks=[fail_in_third], **given)
    with pytest.raises(NodeError, match="the third epoch is not to be"):
        failing.fit(rows(spark))
    model = KerasEstimator(make_line, "mse", "adam", **given).fit(rows(spark))
    assert [row["epoch"] for row in model.history] == [0, 1, 2, 3]
    assert len(list(tmp_path.glob("checkpoint-*"))) == 2


def kill_in_second(kill, model, row):
    if row["epoch"] == 1:
        kill()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_cross_validation_that_loses_a_process_finds_the_same(spark, tmp_path):
    frame = rows(spark).selectExpr("x", "y", "double(y) s").cache()

    def metrics(victim):
        kills = KillsOnce(tmp_path, victim)
        stage = KerasEstimator(
            make_line, "mse", "adam", callbacks=[partial(kill_in_second, kills)], epochs=3,
            featuresCol="x", labelCol="y", storeDir=f"file://{tmp_path}/{victim}", seed=5,
        )  # fmt: skip
        found = metrics_of(stage, frame, (stage.learningRate, [0.1]))
        assert os.path.exists(kills.mark) == (victim != "none")
        return found

    assert metrics("rank") == pytest.approx(metrics("none"), rel=1e-5)
