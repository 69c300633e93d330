"""Programs like CaffeOnSpark's examples, with its package name and calls."""

from pathlib import Path

import pytest
from source_nets import MEMORY, SourceNet


def test_a27_features_train_a_logistic_regression(spark, trained):
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions as f

    from com.yahoo.ml.caffe.CaffeOnSpark import CaffeOnSpark
    from com.yahoo.ml.caffe.DataSource import DataSource

    source = DataSource(spark.sparkContext).getSource(trained, False)
    features = CaffeOnSpark(spark.sparkContext, None).features(source)
    rows = features.select(f.col("label")[0].alias("label"), array_to_vector("ip1").alias("ip1"))
    rows = rows.cache()
    model = LogisticRegression(featuresCol="ip1", maxIter=10).fit(rows)
    right = model.transform(rows).where("label = prediction").count()
    assert right / rows.count() >= 0.95


def test_a28_a_sweep_rewrites_its_files_and_keeps_its_config(spark, digits, tmp_path):
    from com.yahoo.ml.caffe.CaffeOnSpark import CaffeOnSpark
    from com.yahoo.ml.caffe.DataSource import DataSource

    cos, sources = CaffeOnSpark(spark.sparkContext), DataSource(spark.sparkContext)
    table = digits.table("raw", "test")
    fields = MEMORY + ' dataframe_column_select: "label" dataframe_column_select: "image as data"'
    net = SourceNet(tmp_path)
    conf = net.config(spark, "com.yahoo.ml.caffe.ImageDataFrame", f"file:{table}", fields=fields)
    conf.clusterSize = 1
    solver = Path(conf.protoFile)
    losses = []
    for iterations in (1, 20):
        text = solver.read_text().replace("max_iter: 5", "max_iter: 1")
        solver.write_text(text.replace("max_iter: 1", f"max_iter: {iterations}"))
        cos.train(sources.getSource(conf, True))
        losses.append(cos.test(sources.getSource(conf, False))["loss"][0])
    assert conf.solver["max_iter"] == 20
    assert losses[1] < losses[0] == pytest.approx(losses[0])
    solver.write_text("max_iter: many")
    with pytest.raises(ValueError, match=r"_solver\.prototxt:1:"):
        sources.getSource(conf, True)


def test_all_executors_train_and_their_rows_stay_on_disk_as_long(spark, digits, tmp_path):
    from hearth.caffeonspark import CaffeOnSpark, DataSource

    def kept():  # other tests' RDDs may disappear at any moment, when Java collects garbage
        return set(spark.sparkContext._jsc.getPersistentRDDs())

    net = SourceNet(tmp_path)
    flags = {"persistent": True, "clusterSize": None}
    conf = net.config(spark, "com.yahoo.ml.caffe.ImageDataFrame", "", **flags)
    assert (conf.clusterSize, conf.lmdb_partitions) == (2, 2)
    rows = spark.read.parquet(digits.table("raw", "test")).withColumnRenamed("image", "data")
    before, during, events = kept(), set(), []

    def listen(event):
        during.update(kept() - before)
        events.append(event)

    CaffeOnSpark(spark, listen).train(DataSource(spark).fromDataFrame(conf, rows, True))
    assert any(" x 2 processes" in event.get("text", "") for event in events)
    assert len(during) == 1
    assert kept() <= before
