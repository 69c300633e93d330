"""Functions over blocks of rows add, keep and reduce columns, with NumPy and PyTorch."""

import numpy as np
import pytest
import torch
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.linalg import Vectors
from pyspark.sql import functions

from hearth.ml import map_blocks, reduce_blocks

ROWS = 1000


@pytest.fixture(scope="module")
def frame(spark):
    rows = [(i, float(i), [float(i), -float(i)], f"row {i}") for i in range(ROWS)]
    return spark.createDataFrame(rows, "id bigint, x double, pair array<float>, name string")


def test_a_function_adds_columns_and_keeps_the_others(frame):
    found = map_blocks(lambda x, pair: {"z": x + 3, "two": pair * 2}, frame.repartition(3))
    types = {field.name: field.dataType.simpleString() for field in found.schema}
    assert list(types) == ["id", "x", "pair", "name", "z", "two"]
    assert (types["z"], types["two"]) == ("double", "array<float>")
    rows = sorted(found.collect())
    assert [row.id for row in rows] == list(range(ROWS))
    for row in rows[:: ROWS // 10]:
        assert (row.z, row.two, row.name) == (row.x + 3, [2 * row.x, -2 * row.x], f"row {row.id}")


def test_trimmed_blocks_may_have_another_number_of_rows(frame):
    def ends(x):
        return {"ends": np.array([x.min(), x.max()])}

    found = map_blocks(ends, frame.coalesce(1), outputs="ends double", trim=True)
    assert found.columns == ["ends"]
    assert [row.ends for row in found.collect()] == [0, ROWS - 1]
    with pytest.raises(Exception, match=r"returned \[2\] rows for a block of 1000"):
        map_blocks(ends, frame.coalesce(1)).collect()


def test_pytorchs_functions_and_modules_get_tensors(frame):
    def doubled(pair: torch.Tensor):
        assert isinstance(pair, torch.Tensor)
        return {"double": pair * 2}

    assert map_blocks(doubled, frame).first().double == [0, 0]
    module = torch.nn.Linear(2, 3)
    found = map_blocks(module, frame, outputs="y array<float>", columns=["pair"])
    row = found.where("id = 7").first()
    with torch.inference_mode():
        wanted = module(torch.tensor([[7.0, -7.0]]))[0]
    np.testing.assert_allclose(row.y, wanted, rtol=1e-5)


def test_vectors_are_arrays_and_stay_vectors(frame):
    vectors = VectorAssembler(inputCols=["x", "id"], outputCol="v").transform(frame)
    found = map_blocks(lambda v: {"norm": np.abs(v).sum(axis=1)}, vectors)
    row = found.where("id = 5").first()
    assert (row.norm, list(row.v)) == (10, [5, 5])
    assert found.columns == [*vectors.columns, "norm"]
    assert found.schema["norm"].dataType.typeName() == "double"


@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_blocks_are_reduced_to_one_row(spark, frame, partitions):
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 50)
    try:
        found = reduce_blocks(
            lambda x_input, pair: {"x": x_input.sum(axis=0), "pair": pair.max(axis=0)},
            frame.repartition(partitions),
        )
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert found["x"] == ROWS * (ROWS - 1) / 2
    np.testing.assert_array_equal(found["pair"], [ROWS - 1, 0])

    def least(x: torch.Tensor):
        return {"x": x.amin(dim=0)}

    assert reduce_blocks(least, frame)["x"] == 0


def test_errors_are_reported(spark, frame):
    with pytest.raises(ValueError, match="reads the column 'gone'"):
        map_blocks(lambda gone: {"z": gone}, frame)
    with pytest.raises(ValueError, match="adds a column 'x', which the DataFrame has already"):
        map_blocks(lambda x: {"x": x}, frame)
    with pytest.raises(ValueError, match="have no names that could be column names"):
        map_blocks(lambda *all: {}, frame)
    with pytest.raises(Exception, match="returned a ndarray: it must return a dict"):
        map_blocks(lambda x: x, frame)
    with pytest.raises(Exception, match="returned z, but the new columns are y"):
        map_blocks(lambda x: {"z": x}, frame, outputs="y double").collect()
    empty = frame.limit(0)
    with pytest.raises(ValueError, match="types of the new columns are unknown"):
        map_blocks(lambda x: {"z": x}, empty)
    assert map_blocks(lambda x: {"z": x}, empty, outputs="z double").count() == 0
    with pytest.raises(ValueError, match="no rows to reduce"):
        reduce_blocks(lambda x: {"x": x.sum(axis=0)}, empty)
    with pytest.raises(
        Exception, match=r"returned shape \(1000,\) for rows of 'x' with shape \(\)"
    ):
        reduce_blocks(lambda x: {"x": x}, frame.coalesce(1))


def test_columns_of_any_names_are_kept_and_read(spark):
    rows = [(1.0, 2, 3, 4.0, 5, 6.0), (7.0, 8, 9, 10.0, 11, 12.0)]
    frame = spark.createDataFrame(rows, "a double, b int, c int, d double, e int, f double")
    frame = frame.toDF("a.b", "two", "two", "x`y", "Case", "case").coalesce(1)
    added = lambda *values: {"z": sum(values)}  # noqa: E731 (its parameters have no names)
    read = ["a.b", "x`y", "case", "`a.b`"]
    found = map_blocks(added, frame, columns=read)
    assert found.columns == [*frame.columns, "z"]
    assert [tuple(row) for row in found.collect()] == [(*rows[0], 12.0), (*rows[1], 36.0)]
    trimmed = map_blocks(lambda v: {"z.z": v}, frame, columns=read[:1], trim=True)
    assert (trimmed.columns, trimmed.count()) == (["z.z"], 2)
    assert reduce_blocks(lambda v: {"a.b": v.sum(axis=0)}, frame, ["a.b"])["a.b"] == 8
    assert map_blocks(lambda CASE: {"z": CASE}, frame.drop("Case", "case").withColumn(
        "case", functions.lit(1)), "z int").first().z == 1  # fmt: skip
    for name in ("two", "CASE"):
        with pytest.raises(
            ValueError, match=f"the column '{name}', but 2 columns of the DataFrame"
        ):
            map_blocks(added, frame, "z double", columns=[name])
    with pytest.raises(ValueError, match=r"adds a column 'CASE', which .* already, as 'Case'"):
        map_blocks(added, frame, "CASE double", columns=read)


def test_vectors_may_be_sparse_and_a_null_is_counted(spark):
    rows = [(Vectors.dense(1.0, 0.0, 2.0),), (Vectors.sparse(3, [1], [5.0]),)]
    frame = spark.createDataFrame(rows, ["v"]).coalesce(1)
    found = map_blocks(lambda v: {"s": v.sum(axis=1)}, frame, "s double").collect()
    assert [row.s for row in found] == [3, 5]
    assert found[1].v == rows[1][0]
    nulls = frame.union(frame.selectExpr("if(false, v, null)")).coalesce(1)
    with pytest.raises(Exception, match=r"column 'v' .* has 2 nulls in a batch of 4 rows"):
        map_blocks(lambda v: {"s": v.sum(axis=1)}, nulls, "s double").collect()
    huge = spark.createDataFrame([(Vectors.dense(1e300),)], ["v"])
    with pytest.raises(Exception, match="'v' has the value 1e\\+300, which does not fit float32"):
        map_blocks(torch.nn.Linear(1, 1), huge, "s array<float>", ["v"]).collect()


def test_a_stream_passes_through(spark, frame, tmp_path):
    frame.select("id", "x").write.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema("id bigint, x double").parquet(str(tmp_path / "rows"))
    with pytest.raises(ValueError, match="pass the types of the new columns in `outputs`"):
        map_blocks(lambda x: {"z": x + 1}, stream)
    with pytest.raises(ValueError, match="a stream is unbounded"):
        reduce_blocks(lambda x: {"x": x.sum(axis=0)}, stream)
    found = map_blocks(lambda x: {"z": x + 1}, stream, "z double").writeStream.format("memory")
    found.queryName("blocks").trigger(availableNow=True).start().awaitTermination()
    rows = spark.table("blocks").collect()
    assert sorted(row.id for row in rows) == list(range(ROWS))
    assert all(row.z == row.x + 1 for row in rows)
