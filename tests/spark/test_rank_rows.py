"""Ranks get the same rows in the same order whenever a DataFrame is computed."""

from __future__ import annotations

import pytest
from pyspark.sql import functions
from pyspark.sql.types import ArrayType, FloatType, IntegerType, MapType, StructField, StructType
from test_launch_frame import rows_by_rank

from hearth.launch import session_conf
from hearth.rank_rows import in_order_of_content, launch_conf, needs_shuffle, rank_rows

TIMES = 4  # of a shuffle's orders: without sorting, half of all pairs differ


def ids_of(rows, rank=None, stream="train"):
    return [id_ for r, name, id_ in rows if name == stream and rank in (None, r)]


def everything(spark):
    """Rows of many kinds of columns, of which some are equal and some differ in a null alone."""
    number = functions.col("id")
    return spark.range(0, 900, 1, 3).select(
        (number / 3).cast("long").alias("id"),
        functions.when(number % 2 == 0, number).alias("even"),
        functions.when(number % 2 == 1, number).alias("odd"),
        functions.expr("cast(cast(id % 5 as string) as binary)").alias("bytes"),
        functions.array(number.cast("float"), functions.lit(None).cast("float")).alias("list"),
        functions.struct(functions.when(number % 3 == 0, number).alias("a")).alias("nested"),
        functions.when(number % 7 == 0, float("nan")).otherwise(-0.0).alias("nan"),
        functions.lit(None).cast("string").alias("none at all"),
    )


def rows_as_text(spark, frame):
    """[(rank, row as text)] in a rank's order."""

    def wide(batches):
        import pyarrow as pa
        from pyspark import BarrierTaskContext

        rank = BarrierTaskContext.get().partitionId()
        for batch in batches:
            rows = [str(row) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pydict({"rank": [rank] * len(rows), "row": rows})

    with session_conf(spark, launch_conf(spark, 2)):
        stage = rank_rows(spark, {"train": frame}, 2)
        rows = stage.mapInArrow(wide, "rank long, row string", barrier=True).collect()
    return [tuple(row) for row in rows]


def test_rows_of_many_partitions_come_in_one_order(spark):
    seen = [
        rows_by_rank(spark, {"train": spark.range(20000).repartition(16)}) for _ in range(TIMES)
    ]
    assert sorted(ids_of(seen[0])) == list(range(20000))
    assert all(rows == seen[0] for rows in seen)
    for rank in (0, 1):  # neither sorted by value nor badly shared
        ids = ids_of(seen[0], rank)
        assert ids != sorted(ids)
        assert len(ids) == 10000


def test_two_streams_come_in_one_order(spark):
    def make():
        test = spark.range(700).repartition(7).withColumn("x", functions.lit(1.5))
        return {"train": spark.range(5000).repartition(16), "test": test}

    seen = [rows_by_rank(spark, make()) for _ in range(TIMES)]
    assert sorted(ids_of(seen[0])) == list(range(5000))
    assert sorted(ids_of(seen[0], stream="test")) == list(range(700))
    assert all(rows == seen[0] for rows in seen)


def test_rows_of_every_type_come_in_one_order(spark):
    seen = [rows_as_text(spark, everything(spark).repartition(12)) for _ in range(TIMES)]
    assert len(seen[0]) == 900
    assert all(rows == seen[0] for rows in seen)


def test_columns_that_cannot_be_compared_are_left_out(spark):
    inner = StructType([StructField("m", MapType(IntegerType(), FloatType()))])
    schema = StructType([StructField("id", IntegerType()), StructField("s", ArrayType(inner))])
    frame = spark.createDataFrame([(i, [({i: 1.0},)]) for i in range(50)], schema)
    ids = [row.id for row in in_order_of_content(frame.repartition(1)).collect()]
    assert sorted(ids) == list(range(50))
    assert ids != sorted(ids)
    only_maps = frame.select("s")
    assert in_order_of_content(only_maps) is only_maps


# A DataFrame's plan says nothing of the shuffles of the RDD that it was made from.
def test_a_shuffled_rdd_comes_in_one_order(spark):
    def shuffled():
        rows = spark.sparkContext.parallelize([(i,) for i in range(3000)], 8)
        return rows.repartition(2).toDF("id long")

    frames = [shuffled() for _ in range(TIMES)]
    assert not needs_shuffle(frames[0], 2)
    seen = [rows_by_rank(spark, {"train": frame}) for frame in frames]
    assert sorted(ids_of(seen[0])) == list(range(3000))
    assert all(rows == seen[0] for rows in seen)


CORES = "spark.sql.leafNodeDefaultParallelism"
MERGED = "spark.sql.adaptive.coalescePartitions.minPartitionNum"


def test_the_number_of_cores_is_pinned_but_not_what_the_user_set(spark):
    cores = str(spark.sparkContext.defaultParallelism)
    conf = launch_conf(spark, 2)
    assert (conf[CORES], conf[MERGED]) == (cores, cores)
    given = {CORES: "5", "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false"}
    with session_conf(spark, given):
        conf = launch_conf(spark, 2)
    assert conf[CORES] == "5"
    assert MERGED not in conf  # Spark does not look at the cores then


def test_files_are_cut_by_the_pinned_number(spark, tmp_path):
    folder = str(tmp_path / "rows")
    spark.range(0, 4000, 1, 3).selectExpr("id", "repeat('x', 50) as more").write.parquet(folder)
    counts = []
    for cores in ("2", "9"):
        conf = {**launch_conf(spark, 2), CORES: cores, "spark.sql.files.openCostInBytes": "1"}
        with session_conf(spark, conf):
            counts.append(spark.read.parquet(folder).rdd.getNumPartitions())
    assert counts[0] < counts[1]


@pytest.mark.parametrize("cached", [False, True])
def test_the_frames_own_older_plan_does_not_decide(spark, cached):
    frame = spark.sql("select * from range(100)")
    if cached:  # planned with the cores of today
        assert frame.rdd.getNumPartitions() == spark.sparkContext.defaultParallelism
    with session_conf(spark, {CORES: "5"}):
        assert needs_shuffle(frame, 2)
        assert not needs_shuffle(frame, 5)
