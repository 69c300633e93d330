"""Caffe trainings in MLflow: an estimator on a DataFrame, and a net that reads files itself."""

from __future__ import annotations

import sys
from pathlib import Path

from conftest import Digits
from pyspark.sql import functions
from tracking import Tracked, track_in, tracked

from hearth.caffeonspark import CaffeOnSpark, DataSource
from hearth.ml import CaffeEstimator
from hearth.spark import session as spark_session

STEPS = 60
SETTINGS = {"max_iter": STEPS, "display": 20, "test_interval": 30}


def check(run: Tracked) -> None:
    """Checks what both trainings have in common."""
    params = run.params
    assert (params["base_lr"], params["max_iter"], params["workers"]) == ("0.01", "60", "2"), params
    assert params["model"].endswith(".caffemodel")
    run.check_steps("loss/train", {1, STEPS})
    run.check_steps("run/learning_rate", {STEPS})
    run.check_steps("accuracy/test", {30, 60})
    assert run.metric("accuracy/test")[60] > 0.5


def features(spark, conf, blob: str) -> dict[str, list[float]]:
    """Features that a Config's model extracts from the held-out rows."""
    rows = CaffeOnSpark(spark).features(DataSource(spark).getSource(conf, False)).collect()
    return {row.SampleID: row[blob] for row in rows}


def estimator(spark, digits: Digits, folder: Path) -> None:
    train, test = (spark.read.parquet(digits.table("raw", kind)) for kind in ("train", "test"))
    frame = train.withColumn("held", functions.lit(False))
    frame = frame.union(test.withColumn("held", functions.lit(True)))
    stage = CaffeEstimator(digits.solver("cos", **SETTINGS), f"file:{folder}")
    stage.setClusterSize(2).setBlobs(["ip2"]).setValidationIndicatorCol("held")
    with tracked() as run:
        model = stage.fit(frame)
    check(run)
    run.check_dataset("train", version=None, rows=train.count(), hash=None)
    run.check_dataset("test", version=None)
    assert not any(name.endswith(".uri") for name in run.params)  # the net's sources are left out
    logged = run.artifact("*.caffemodel")
    assert logged.name == f"{model.uid}.caffemodel"
    flags = {"model": f"file:{logged}", "features": "ip2"}
    conf = digits.config(spark, digits.solver("cos"), **flags)
    wanted = {row.id: row.ip2 for row in model.transform(test).collect()}
    assert features(spark, conf, "ip2") == wanted


def files(spark, digits: Digits) -> None:
    conf = digits.config(spark, digits.solver("memory", **SETTINGS), clusterSize="2")
    train, test = (DataSource(spark).getSource(conf, kind) for kind in (True, False))
    with tracked() as run:
        CaffeOnSpark(spark).trainWithValidation(train, test)
    check(run)
    rows = spark.read.parquet(digits.table("png", "train")).count()
    run.check_dataset("train", uri=train.uri, version=None, rows=rows)
    run.check_dataset("test", uri=test.uri, version=None, rows=digits.held_out)
    solver = digits.solver("memory", **SETTINGS)
    found = []
    for model in (run.params["model"], f"file:{run.artifact('*.caffemodel')}"):
        found.append(
            features(spark, digits.config(spark, solver, model=model, features="ip2"), "ip2")
        )
    assert len(found[0]) == digits.held_out and found[0] == found[1]


def main() -> None:
    folder = Path(sys.argv[1])
    track_in(folder)
    spark = spark_session.start("tracked", executors=2)
    digits = Digits(folder)
    estimator(spark, digits, folder)
    files(spark, digits)
    spark.stop()


if __name__ == "__main__":
    main()
