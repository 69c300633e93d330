"""Keras trainings in MLflow: an estimator, and a program that reads a frame and a table."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake
from tracking import track_in, tracked

from hearth import cluster
from hearth.data import delta
from hearth.ml import KerasEstimator
from hearth.spark import session as spark_session

ROWS, EPOCHS = 200, 3


def make_line(units=1):
    import keras

    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(units)])


def train(args, ctx):
    import keras

    import hearth.tensorflow as hvt

    hvt.init()
    keras.utils.set_random_seed(1)
    model = make_line()
    model.compile(hvt.DistributedOptimizer(keras.optimizers.Adam(args["lr"])), "mse")
    rows = ctx.dataset("train", batch_size=20).as_keras_dataset("x", "y")
    held = ctx.dataset("held", batch_size=20).as_keras_dataset("x", "y")
    report = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: ctx.report(
            {"loss": logs["loss"], "val/loss": logs["val_loss"]}, step=epoch
        )
    )
    callbacks = [rows.callback(), hvt.MetricAverageCallback(), report]
    model.fit(
        rows, validation_data=held, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=callbacks
    )


def estimator(spark, frame) -> None:
    import keras

    stage = KerasEstimator(
        make_line, "mse", "adam", metrics=["mae"], epochs=EPOCHS, learningRate=0.05, workers=2,
        batchSize=16, validationFraction=0.2, inputCols=["x"], labelCol="y", modelArgs={"units": 1},
    )  # fmt: skip
    with tracked() as run:
        model = stage.fit(frame)
    params = run.params
    assert (params["estimator"], params["epochs"]) == ("KerasEstimator", "3"), params
    assert (params["learningRate"], params["modelArgs.units"]) == ("0.05", "1"), params
    assert params["workers"] == "2"
    for name in ("loss", "mae", "val_loss", "val_mae"):
        assert run.in_order(name) == [row[name] for row in model.history], name
    run.check_dataset("train", version=None, rows=None, hash=None)
    run.check_dataset("validation", version=None, rows=None, hash=None)
    rows = [int(params[f"dataset.{kind}.rows"]) for kind in ("train", "validation")]
    assert sum(rows) == ROWS and min(rows) > 0
    loaded = keras.saving.load_model(run.artifact("model.keras"))
    rows = model.transform(frame).collect()
    found = loaded.predict(np.array([row.x for row in rows], "f4"), verbose=0)
    assert np.allclose(found, [row.output for row in rows], atol=1e-6)


def program(spark, frame, folder: Path) -> None:
    held = str(folder / "held")
    write_deltalake(held, pa.table({"x": [[0.0, 1.0]] * 40, "y": [1.0] * 40}))
    with tracked() as run:
        datasets = {"train": frame, "held": delta(held)}
        cluster.run(spark, train, {"lr": 0.01}, nodes=2, datasets=datasets).shutdown()
    params = run.params
    assert (params["lr"], params["workers"]) == ("0.01", "2"), params
    for name in ("loss", "val/loss"):
        run.check_steps(name, set(range(EPOCHS)))
    run.check_dataset("train", version=None, rows=ROWS, hash=None)
    run.check_dataset("held", uri=held, version=None, rows=40, hash=None)
    assert params["dataset.held.version"].startswith("Delta version 0, 40 rows, "), params


def main() -> None:
    folder = Path(sys.argv[1])
    track_in(folder)
    spark = spark_session.start("tracked", executors=2)
    frame = spark.range(0, ROWS, 1, 4).selectExpr(
        "array(float(id / 100), float(1 - id / 200)) x", "float(1 + id / 200) y"
    )
    estimator(spark, frame)
    program(spark, frame, folder)
    spark.stop()


if __name__ == "__main__":
    main()
