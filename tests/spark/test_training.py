"""Training on two executors through both APIs and both data layers."""

import json

import pytest
from pyspark.sql import functions

from hearth.caffeonspark import CaffeOnSpark, DataSource

KINDS = {"memory": "png", "cos": "raw"}


def train_source(spark, digits, conf, layer, api, partitions=None):
    if api == "files":
        return DataSource(spark).getSource(conf, True)
    frame = spark.read.parquet(digits.table(KINDS[layer], "train"))
    if partitions:
        frame = frame.repartition(partitions)
    return DataSource(spark).fromDataFrame(conf, frame, True)


@pytest.mark.parametrize("api", ["files", "rows"])
@pytest.mark.parametrize("layer", ["memory", "cos"])
def test_a_net_learns_through_either_api_and_layer(spark, digits, layer, api):
    conf = digits.config(spark, digits.solver(layer, max_iter=200), clusterSize="2")
    CaffeOnSpark(spark).train(train_source(spark, digits, conf, layer, api))
    means = CaffeOnSpark(spark).test(DataSource(spark).getSource(conf, False))
    assert means["accuracy"][0] >= 0.93
    assert means["loss"][0] < 0.4


@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_rows_may_have_any_number_of_partitions(spark, digits, partitions):
    conf = digits.config(spark, digits.solver("cos", max_iter=30), clusterSize="2")
    source = train_source(spark, digits, conf, "cos", "rows", partitions)
    CaffeOnSpark(spark).train(source)
    means = CaffeOnSpark(spark).test(DataSource(spark).getSource(conf, False))
    assert means["accuracy"][0] > 0.3


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("api", ["files", "rows"])
def test_fewer_rows_than_the_ranks_batches_are_enough(spark, digits, tmp_path, rows, api):
    conf = digits.config(spark, digits.solver("cos", max_iter=5), clusterSize="2")
    frame = spark.read.parquet(digits.table("raw", "train")).limit(rows)
    if api == "files":
        frame.coalesce(1).write.parquet(str(tmp_path / "few"))
        conf.data_layer(True)["cos_data_param"]["source"] = str(tmp_path / "few")
        source = DataSource(spark).getSource(conf, True)
    else:
        source = DataSource(spark).fromDataFrame(conf, frame, True)
    CaffeOnSpark(spark).train(source)


def test_training_without_rows_is_an_error(spark, digits):
    from hearth import HearthError

    conf = digits.config(spark, digits.solver("cos", max_iter=5), clusterSize="2")
    frame = spark.read.parquet(digits.table("raw", "train")).where(functions.lit(False))
    with pytest.raises(HearthError, match="no rows"):
        CaffeOnSpark(spark).train(DataSource(spark).fromDataFrame(conf, frame, True))


@pytest.mark.parametrize("api", ["files", "rows"])
def test_validation_runs_during_training(spark, digits, api):
    conf = digits.config(spark, digits.solver("memory", max_iter=81, test_interval=10))
    conf.clusterSize = 2
    source = train_source(spark, digits, conf, "memory", api)
    frame = spark.read.parquet(digits.table("png", "test"))
    if api == "files":
        validation = DataSource(spark).getSource(conf, False)
    else:
        validation = DataSource(spark).fromDataFrame(conf, frame, False)
    result = CaffeOnSpark(spark).trainWithValidation(source, validation)
    assert result.columns == ["accuracy", "loss"]
    assert {field.dataType.simpleString() for field in result.schema} == {"array<float>"}
    rows = result.collect()
    assert len(rows) == 8  # iterations 10, 20, ... 80; not 0, and not 81
    assert rows[-1].accuracy[0] > 0.6
    assert rows[-1].accuracy[0] > rows[0].accuracy[0]


# 1,000 output values that depend on the weights and on the rows of each validation.
MANY_VALUES = """
layer {
  name: "many" type: "InnerProduct" bottom: "ip1" top: "many" include { phase: TEST }
  inner_product_param { num_output: 1000 weight_filler { type: "gaussian" std: 1 } }
}
"""


def test_megabytes_of_validations_are_returned_complete(spark, digits):
    settings = {"max_iter": 70, "test_interval": 1, "test_iter": 1, "test_initialization": "false"}
    solver = digits.solver("cos", batch=8, **settings)
    with open(solver.replace("_solver", "_net"), "a", encoding="utf-8") as net:
        net.write(MANY_VALUES)
    conf = digits.config(spark, solver, clusterSize="2")
    reported = []
    cos = CaffeOnSpark(spark, lambda e: reported.append(e) if e["event"] == "validation" else None)
    sources = DataSource(spark)
    rows = cos.trainWithValidation(sources.getSource(conf, True), sources.getSource(conf, False))
    found = [row.asDict() for row in rows.collect()]
    assert [event["iteration"] for event in reported] == list(range(1, 71))
    assert {len(row["many"]) for row in found} == {1000}
    assert found == [event["outputs"] for event in reported]  # events arrive in separate frames
    assert len(json.dumps(found)) > 1 << 20  # more than a frame's limit
    assert len({tuple(row["many"]) for row in found}) == 70


def test_a_sparkcontext_trains_and_tests_twice(spark, digits):
    context = spark.sparkContext
    for batch in (16, 32):
        conf = digits.config(context, digits.solver("cos", batch=batch, max_iter=20))
        CaffeOnSpark(context).train(DataSource(context).getSource(conf, True))
        assert "accuracy" in CaffeOnSpark(context).test(DataSource(context).getSource(conf, False))


def test_two_devices_per_executor(spark, digits):
    conf = digits.config(spark, digits.solver("cos", max_iter=20), clusterSize="2", devices="2")
    CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))


def test_training_again_from_weights(spark, digits, trained):
    solver = digits.solver("memory", max_iter=1, base_lr=0.0)
    conf = digits.config(spark, solver, weights=trained.modelPath)
    CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
    cos, sources = CaffeOnSpark(spark), DataSource(spark)
    again, before = (
        cos.test(sources.getSource(conf, False)),
        cos.test(sources.getSource(trained, False)),
    )
    assert again["loss"] == pytest.approx(before["loss"], rel=1e-5)


def test_a11_the_last_validation_is_a_test_of_the_written_model(spark, digits):
    solver = digits.solver("memory", max_iter=20, test_interval=10)
    conf = digits.config(spark, solver, clusterSize="2")
    cos, sources = CaffeOnSpark(spark), DataSource(spark)
    frame = cos.trainWithValidation(sources.getSource(conf, True), sources.getSource(conf, False))
    rows = frame.collect()
    assert len(rows) == 2  # CaffeOnSpark does not validate after the last iteration
    means = cos.test(sources.getSource(conf, False))  # on the same rows: both read the whole table
    for name in frame.columns:
        assert rows[-1][name] == pytest.approx(means[name], rel=1e-5)
