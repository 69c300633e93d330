"""CaffeEstimator on YARN, with rows and models in HDFS."""

from __future__ import annotations

from hearth.ml import CaffeEstimator, CaffeModel


def test_a_caffe_model_is_trained_saved_and_applied_in_hdfs(hadoop, spark, digits):
    rows = spark.read.parquet(f"{digits.home}/digits/raw/test.parquet")
    stage = CaffeEstimator(digits.solver(max_iter=5), f"{digits.home}/caffe-ml")
    model = stage.setClusterSize(2).setBlobs(["ip2"]).fit(rows)
    assert model.getModelPath().startswith(f"{digits.home}/caffe-ml/")
    model.save(f"{digits.home}/caffe-saved")
    again = CaffeModel.load(f"{digits.home}/caffe-saved")
    found = {row.id: row.ip2 for row in model.transform(rows).collect()}
    assert {row.id: row.ip2 for row in again.transform(rows).collect()} == found
    assert len(found) == rows.count() and all(len(blob) == 10 for blob in found.values())
