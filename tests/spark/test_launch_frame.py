"""The rows with which ranks are launched: complete, one partition per rank, barrier-safe."""

import pytest
from pyspark.sql import functions

from hearth.caffe_jobs.launch import session_conf
from hearth.caffe_jobs.ring_feed import split_streams
from hearth.rows.rank_rows import launch_conf, needs_shuffle, rank_rows
from hearth.spark.slots import SlotWait, slots_now


def numbers(spark, begin, end, parts):
    """An RDD of rows."""
    return spark.sparkContext.parallelize([(number,) for number in range(begin, end)], parts)


def rows_by_rank(spark, frames, world=2):
    """[(rank, stream, id)] in the order in which each rank's task receives the rows, in a barrier
    stage.
    """
    names = tuple(frames)

    def task(batches):
        import pyarrow as pa
        from pyspark import BarrierTaskContext

        rank = BarrierTaskContext.get().partitionId()
        for name, rows in split_streams(batches, names):
            ids = rows.column("id").to_pylist()
            columns = {"rank": [rank] * len(ids), "stream": [name] * len(ids), "id": ids}
            yield pa.RecordBatch.from_pydict(columns)

    with session_conf(spark, launch_conf(spark, world, frames.values())):
        frame = rank_rows(spark, frames, world)
        stage = frame.mapInArrow(task, "rank long, stream string, id long", barrier=True)
        return [tuple(row) for row in stage.collect()]


def test_two_streams_share_tasks_and_are_separated(spark):
    frames = {"train": spark.range(100), "test": spark.range(7).withColumn("x", functions.lit(1.5))}
    rows = rows_by_rank(spark, frames)
    assert sorted(id_ for _, stream, id_ in rows if stream == "train") == list(range(100))
    assert sorted(id_ for _, stream, id_ in rows if stream == "test") == list(range(7))
    counts = [sum(rank == r for r, stream, _ in rows if stream == "train") for rank in (0, 1)]
    assert min(counts) >= 40


@pytest.mark.parametrize(
    "make",
    [
        lambda spark: spark.range(0, 50, 1, 1),
        lambda spark: spark.range(0, 50, 1, 2),
        lambda spark: spark.range(0, 50, 1, 8).coalesce(2),
        lambda spark: spark.range(0, 90, 1, 8).limit(50),
        lambda spark: spark.range(0, 50, 1, 2).repartition(2),
        lambda spark: spark.range(0, 30, 1, 1).union(spark.range(30, 50, 1, 1)),
        lambda spark: spark.createDataFrame(numbers(spark, 0, 50, 8).coalesce(2), "id long"),
        lambda spark: spark.createDataFrame(
            numbers(spark, 0, 30, 1).union(numbers(spark, 30, 50, 1)), "id long"
        ),
    ],
)
def test_any_dataframe_makes_a_barrier_stage(spark, make):
    rows = rows_by_rank(spark, {"train": make(spark)})
    assert len({id_ for _, _, id_ in rows}) == len(rows) == 50


def test_rows_with_matching_partitions_are_not_shuffled(spark):
    assert not needs_shuffle(spark.range(0, 50, 1, 2), 2)
    assert needs_shuffle(spark.range(0, 50, 1, 3), 2)


def test_slots_are_counted(spark):
    SlotWait(spark, 2).wait()
    assert slots_now(spark) == 2
