"""features() and test(): every row once, in order, the same for any batch size and partitioning."""

import numpy as np
import pytest

from hearth import HearthError
from hearth.caffeonspark import CaffeOnSpark, Config, DataSource


def features_of(spark, digits, conf, partitions=None):
    if partitions is None:
        source = DataSource(spark).getSource(conf, False)
    else:
        rows = spark.read.parquet(digits.table("png", "test")).repartition(partitions)
        source = DataSource(spark).fromDataFrame(conf, rows, False)
    return CaffeOnSpark(spark).features(source)


@pytest.fixture(scope="module")
def reference(spark, digits, trained):
    return {row.SampleID: row for row in features_of(spark, digits, trained).collect()}


def test_schema_is_caffeonsparks(spark, digits, trained):
    schema = features_of(spark, digits, trained).schema
    assert schema.names == ["SampleID", "accuracy", "ip1", "ip2", "label"]
    types = [field.dataType.simpleString() for field in schema]
    assert types == ["string"] + ["array<float>"] * 4
    assert not any(field.nullable for field in schema)


def test_lengths_are_the_blobs(reference):
    row = next(iter(reference.values()))
    assert [len(row[name]) for name in ("accuracy", "ip1", "ip2", "label")] == [1, 500, 10, 1]


def test_every_row_has_its_own_id(spark, digits, reference):
    ids = [row.id for row in spark.read.parquet(digits.table("png", "test")).collect()]
    assert sorted(reference) == sorted(ids)


@pytest.mark.parametrize("batch", [1, 7, 64])
@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_values_depend_on_neither_batch_nor_partitions(
    spark, digits, trained, reference, batch, partitions
):
    solver = digits.solver("memory", batch=batch)
    flags = {"conf": solver, "model": trained.modelPath, "features": "ip2", "label": "label"}
    rows = features_of(spark, digits, Config(spark, flags), partitions).collect()
    assert sorted(row.SampleID for row in rows) == sorted(reference)
    for row in rows:
        expected = reference[row.SampleID]
        assert row.label == expected.label
        np.testing.assert_allclose(row.ip2, expected.ip2, rtol=1e-4, atol=1e-4)


def test_rows_without_id_are_numbered(spark, digits, trained):
    rows = spark.read.parquet(digits.table("png", "test")).drop("id")
    rows = rows.withColumnRenamed("image", "data")
    conf = Config(spark, {"conf": trained.protoFile, "model": trained.modelPath, "features": "ip2"})
    conf.data_layer(False)["memory_data_param"]["dataframe_column_select"] = []
    result = CaffeOnSpark(spark).features(DataSource(spark).fromDataFrame(conf, rows, False))
    ids = [row.SampleID for row in result.collect()]
    assert ids[0] == "00000000"
    assert len(set(ids)) == digits.held_out


def test_means_are_those_of_all_rows(spark, digits, trained, reference):
    means = CaffeOnSpark(spark).test(DataSource(spark).getSource(trained, False))
    right = [np.argmax(row.ip2) == row.label[0] for row in reference.values()]
    assert list(means) == ["accuracy", "loss"]
    assert means["accuracy"][0] == pytest.approx(np.mean(right), abs=1e-6)


def test_an_empty_source_gives_no_features(spark, digits, trained):
    rows = spark.read.parquet(digits.table("png", "test")).limit(0)
    source = DataSource(spark).fromDataFrame(trained, rows, False)
    assert CaffeOnSpark(spark).features(source).collect() == []


def test_spark_may_stop_reading_early(spark, digits, trained):
    assert len(features_of(spark, digits, trained, 3).take(2)) == 2
    assert features_of(spark, digits, trained, 3).count() == digits.held_out


def test_an_unknown_blob_is_named(spark, digits, trained):
    flags = {"conf": trained.protoFile, "model": trained.modelPath, "features": "ip7"}
    with pytest.raises(Exception, match="ip7"):
        features_of(spark, digits, Config(spark, flags)).collect()


def test_a_column_that_no_net_can_read_is_named_in_one_line(spark, digits, trained):
    rows = spark.read.parquet(digits.table("png", "test"))
    rows = rows.selectExpr("id", "map(label, label) as label", "image")
    said = r"^rank 0 on host \S+ failed: .*column 'label' has Arrow type map"
    with pytest.raises(HearthError, match=said):
        CaffeOnSpark(spark).test(DataSource(spark).fromDataFrame(trained, rows, False))


def test_a_failure_of_spark_keeps_its_message(spark, digits, trained):
    rows = spark.read.parquet(digits.table("png", "test"))
    rows = rows.selectExpr("id", "label", "if(id is null, image, raise_error('no such row')) image")
    with pytest.raises(Exception, match="no such row"):
        CaffeOnSpark(spark).test(DataSource(spark).fromDataFrame(trained, rows, False))
