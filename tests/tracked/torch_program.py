"""PyTorch trainings in MLflow: an estimator, also in a CrossValidator, and a program of ranks."""

from __future__ import annotations

import sys
from pathlib import Path

import mlflow
import numpy as np
import torch
from pyspark.ml import Pipeline
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.feature import SQLTransformer
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from tracking import track_in, tracked

from hearth.ml import TorchEstimator
from hearth.spark import session as spark_session
from hearth.torch import TorchCluster

ROWS, EPOCHS = 200, 3


def make_line(hidden=4):
    from torch import nn

    return nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, 1))


def train(args, ctx):
    import torch.distributed as dist

    dist.init_process_group(ctx.backend)
    loader = ctx.dataset("train", batch_size=20, columns=("x", "y"))
    for step in range(args["steps"]):
        rows = sum(len(x) for x, _ in loader)
        # Includes a name that MLflow accepts only changed, and a value that is not finite.
        ctx.report({"loss": 1 / (1 + step), "val//a:b": step, "nan": float("nan")}, step=step)
    return rows


def estimator(spark, frame) -> None:
    from safetensors.torch import load_file

    stage = TorchEstimator(
        make_line, torch.nn.functional.mse_loss, torch.optim.Adam, epochs=EPOCHS, workers=2,
        learningRate=0.01, featuresCol="x", labelCol="y", modelArgs={"hidden": 8},
    )  # fmt: skip
    with tracked() as run:
        model = stage.fit(frame)
        example = np.ones((ROWS, 2), "f4")
        mlflow.pytorch.log_model(model.module(), name="flavor", input_example=example)
    params = run.params
    assert (params["estimator"], params["epochs"]) == ("TorchEstimator", "3"), params
    assert (params["modelArgs.hidden"], params["workers"]) == ("8", "2"), params
    assert run.in_order("loss") == [row["loss"] for row in model.history]
    assert len(model.history) == EPOCHS
    run.check_dataset("train", version=None, rows=ROWS, hash=None)
    rows = model.transform(frame).collect()
    features = torch.tensor(np.array([row.x for row in rows], "f4"))
    loaded = make_line(8)
    loaded.load_state_dict(load_file(run.artifact("weights.safetensors")))
    flavor = mlflow.pytorch.load_model(f"runs:/{run.run_id}/flavor")
    for module in (loaded, flavor):
        found = module(features).detach().numpy()
        assert np.allclose(found, [row.output for row in rows], atol=1e-6)


def cross_validation(spark, frame) -> None:
    stage = TorchEstimator(
        make_line, torch.nn.functional.mse_loss, torch.optim.Adam, epochs=1, workers=1,
        featuresCol="x", labelCol="y", outputCol="prediction",
    )  # fmt: skip
    grid = ParamGridBuilder().addGrid(stage.learningRate, [1e-9, 0.03]).build()
    evaluator = RegressionEvaluator(labelCol="s", predictionCol="p")
    first = SQLTransformer(statement="SELECT *, double(prediction[0]) p FROM __THIS__")
    stages = Pipeline(stages=[stage, first])
    with tracked() as run:
        best = CrossValidator(
            estimator=stages, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2,
            parallelism=2,
        ).fit(frame.selectExpr("*", "double(y[0]) s"))  # fmt: skip
    # The trials log nothing, but the final fit with the best Params does.
    chosen = best.bestModel.stages[0]
    found = "0.03" if best.avgMetrics[1] < best.avgMetrics[0] else "1e-09"
    assert run.params["learningRate"] == found
    assert run.in_order("loss") == [row["loss"] for row in chosen.history]
    run.check_dataset("train", rows=ROWS)
    run.artifact("weights.safetensors")


def program(spark, frame) -> None:
    with tracked() as run:
        cluster = TorchCluster.run(
            spark, train, {"steps": 3}, workers=2, datasets={"train": frame}, restart=False
        )
        rows = cluster.result()
    assert rows[0] >= ROWS / 2
    assert run.params["steps"] == "3"
    assert run.metric("loss") == {0: 1, 1: 1 / 2, 2: 1 / 3}
    (odd,) = run.metrics() - {"loss", "nan", "run/rows_per_s"}
    assert run.metric(odd) == {0: 0, 1: 1, 2: 2}, odd
    run.check_dataset("train", version=None, rows=ROWS, hash=None)


def main() -> None:
    track_in(Path(sys.argv[1]))
    spark = spark_session.start("tracked", executors=2)
    frame = spark.range(0, ROWS, 1, 4).selectExpr(
        "array(float(id / 100), float(1 - id / 200)) x", "array(float(1 + id / 200)) y"
    )
    estimator(spark, frame)
    program(spark, frame)
    cross_validation(spark, frame)
    spark.stop()


if __name__ == "__main__":
    main()
