"""Ranks get the same rows in the same order whenever a DataFrame is computed."""

from __future__ import annotations

import frames as kinds
import pytest
from pyspark.sql import functions
from test_launch_frame import rows_by_rank

from hearth.caffe_jobs.launch import session_conf
from hearth.rows.rank_rows import (
    is_deterministic,
    launch_conf,
    needs_shuffle,
    rank_rows,
    sorted_by_content,
)


def ids_of(rows, rank=None, stream="train"):
    return [id_ for r, name, id_ in rows if name == stream and rank in (None, r)]


def order_of(spark, frames):
    """All rows in the order that a single rank would read, computed without a barrier stage."""
    with session_conf(spark, launch_conf(spark, 1, frames.values())):
        return rank_rows(spark, frames, 1).collect()


def assert_in_this_order(rows, order, stream="train"):
    """Checks that each rank's rows keep the order of all rows, however Spark's blocks arrived."""
    assert sorted(ids_of(rows, stream=stream)) == sorted(order)
    for rank in (0, 1):
        ids = ids_of(rows, rank, stream)
        members = set(ids)
        assert ids == [id_ for id_ in order if id_ in members]


def everything(numbers):
    """Rows with many column types; some rows are equal, and some differ only in a null."""
    number = functions.col("id")
    return numbers.select(
        (number / 3).cast("long").alias("id"),
        functions.when(number % 2 == 0, number).alias("even"),
        functions.when(number % 2 == 1, number).alias("odd"),
        functions.expr("cast(cast(id % 5 as string) as binary)").alias("bytes"),
        functions.array(number.cast("float"), functions.lit(None).cast("float")).alias("list"),
        functions.struct(functions.when(number % 3 == 0, number).alias("a")).alias("nested"),
        functions.when(number % 7 == 0, float("nan")).otherwise(-0.0).alias("nan"),
        functions.lit(None).cast("string").alias("none at all"),
    )


def test_rows_of_many_partitions_have_one_order(spark):
    frame = spark.range(4000).repartition(16)
    rows = rows_by_rank(spark, {"train": frame})
    assert_in_this_order(rows, [row.id for row in order_of(spark, {"train": frame})])
    assert sorted(ids_of(rows)) == list(range(4000))
    for rank in (0, 1):  # not sorted by value, and evenly distributed
        ids = ids_of(rows, rank)
        assert ids != sorted(ids)
        assert len(ids) == 2000
    assert rows_by_rank(spark, {"train": spark.range(4000).repartition(16)}) == rows


SORTS = "spark.sql.execution.sortBeforeRepartition"


def test_deterministic_frames_are_recognized(spark, tmp_path):
    wanted = kinds.Wanted(spark, tmp_path, 20, 2)
    deterministic = {kind for kind, make in kinds.KINDS.items() if is_deterministic(make(wanted))}
    assert deterministic == {"range", "parquet", "csv", "json", "pandas"}
    scan, shuffled = (kinds.KINDS[kind](wanted) for kind in ("parquet", "repartition"))
    assert is_deterministic(scan.filter("x > 0").selectExpr("id + 1 as id", "rand(7) as y"))
    assert not is_deterministic(scan.limit(5))
    assert launch_conf(spark, 2, [scan, scan])[SORTS] == "false"
    assert launch_conf(spark, 2, [scan, shuffled])[SORTS] == "true"


@pytest.mark.parametrize("streams", [("train",), ("train", "test")])
def test_rows_of_deterministic_frames_are_distributed_evenly_and_shuffled(spark, streams):
    frames = {stream: spark.range(0, 4000, 1, 16) for stream in streams}
    order = order_of(spark, frames)
    rows = rows_by_rank(spark, frames)
    for stream in streams:
        taken = [row.id if len(streams) == 1 else row[stream] and row[stream].id for row in order]
        assert_in_this_order(rows, [id_ for id_ in taken if id_ is not None], stream)
        for rank in (0, 1):
            ids = ids_of(rows, rank, stream)
            assert abs(len(ids) - 2000) <= 16
            halves = [sum(id_ < 2000 for id_ in half) for half in (ids[:1000], ids[1000:])]
            assert min(halves) > 400


def test_a_cached_frame_has_the_same_order(spark):
    frame = spark.range(0, 4000, 1, 16).selectExpr("id", "id + 1 as next")
    order = order_of(spark, {"train": frame})
    rows = rows_by_rank(spark, {"train": frame})
    kept = frame.persist()
    try:
        assert "InMemoryTableScan" in kept._jdf.queryExecution().executedPlan().toString()
        assert is_deterministic(kept)
        assert order_of(spark, {"train": kept}) == order
        assert rows_by_rank(spark, {"train": kept}) == rows
    finally:
        kept.unpersist()
    shuffled = spark.range(100).repartition(3).persist()
    assert not is_deterministic(shuffled)
    shuffled.unpersist()


def test_a_users_column_is_not_mistaken_for_the_position(spark):
    names = ["Hearth Position", "hearth position'"]
    frame = spark.range(9).selectExpr(*(f"id as `{name}`" for name in names))
    assert is_deterministic(frame)
    rows = order_of(spark, {"train": frame})
    assert sorted(map(tuple, rows)) == [(i, i) for i in range(9)]
    assert rows[0].asDict().keys() == set(names)


def test_two_streams_have_one_order(spark):
    test = spark.range(700).repartition(7).withColumn("x", functions.lit(1.5))
    frames = {"train": spark.range(5000).repartition(16), "test": test}
    rows = rows_by_rank(spark, frames)
    order = order_of(spark, frames)
    for stream, count in (("train", 5000), ("test", 700)):
        ids = [row[stream].id for row in order if row[stream] is not None]
        assert sorted(ids) == list(range(count))
        assert_in_this_order(rows, ids, stream)


def test_rows_of_every_type_have_one_order(spark):
    frames = [everything(spark.range(*way, 1)) for way in ((0, 900, 1), (899, -1, -1))]
    up, down = ([str(row) for row in frame.collect()] for frame in frames)
    assert up == down[::-1] != down
    up, down = ([str(row) for row in sorted_by_content(frame).collect()] for frame in frames)
    assert len(up) == 900
    assert up == down


def test_incomparable_columns_are_ignored(spark):
    number = functions.col("id")
    maps = functions.array(functions.struct(functions.create_map(number, number).alias("m")))
    frame = spark.range(0, 50, 1, 1).select("id", maps.alias("s"))
    ids = [row.id for row in sorted_by_content(frame).collect()]
    assert sorted(ids) == list(range(50))
    assert ids != sorted(ids)
    only_maps = frame.select("s")
    assert sorted_by_content(only_maps) is only_maps


# A DataFrame's plan does not show that the RDD it was made from is shuffled.
def test_a_shuffled_rdd_has_one_order(spark):
    rdd = spark.sparkContext.parallelize([(i,) for i in range(3000)], 8).repartition(2)
    frame = rdd.toDF("id long")
    assert not needs_shuffle(frame, 2)
    order = [row.id for row in order_of(spark, {"train": frame})]
    assert_in_this_order(rows_by_rank(spark, {"train": frame}), order)


CORES = "spark.sql.leafNodeDefaultParallelism"
MERGED = "spark.sql.adaptive.coalescePartitions.minPartitionNum"


def test_the_number_of_cores_is_pinned_unless_the_user_set_it(spark):
    cores = str(spark.sparkContext.defaultParallelism)
    shuffled = [spark.range(10).distinct()]
    conf = launch_conf(spark, 2, shuffled)
    assert (conf[CORES], conf[MERGED]) == (cores, cores)
    # Without a shuffle the setting is left out, because Spark logs that it is deprecated.
    assert MERGED not in launch_conf(spark, 2, [spark.range(10)])
    assert MERGED not in launch_conf(spark, 2, [])
    given = {CORES: "5", "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false"}
    with session_conf(spark, given):
        conf = launch_conf(spark, 2, shuffled)
    assert conf[CORES] == "5"
    assert MERGED not in conf  # Spark then ignores the number of cores


def test_files_are_cut_by_the_pinned_number(spark, tmp_path):
    for name in "abc":
        (tmp_path / name).write_text("xxxxxxxxx\n" * 2000)
    counts = []
    for cores in ("2", "9"):
        conf = {**launch_conf(spark, 2, []), CORES: cores, "spark.sql.files.openCostInBytes": "1"}
        with session_conf(spark, conf):
            counts.append(spark.read.text(str(tmp_path)).rdd.getNumPartitions())
    assert counts[0] < counts[1]


@pytest.mark.parametrize("cached", [False, True])
def test_an_older_plan_of_the_frame_is_ignored(spark, cached):
    frame = spark.sql("select * from range(100)")
    if cached:  # plans the frame with the present number of cores
        assert frame.rdd.getNumPartitions() == spark.sparkContext.defaultParallelism
    with session_conf(spark, {CORES: "5"}):
        assert needs_shuffle(frame, 2)
        assert not needs_shuffle(frame, 5)
