"""Test DataFrames of many kinds, all with the columns `id` (0 .. rows-1, each once) and `x`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Wanted:
    """Describes a frame to make. `folder` is where kinds that read files write them."""

    spark: SparkSession
    folder: Path
    rows: int
    partitions: int


def _with_x(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("cast(id as int) as id", "cast(id % 7 / 7.0 as float) as x")


def _range(wanted: Wanted) -> DataFrame:
    return _with_x(wanted.spark.range(0, wanted.rows, 1, wanted.partitions))


def _local(wanted: Wanted) -> DataFrame:
    rows = [(i, i % 7 / 7) for i in range(wanted.rows)]
    return wanted.spark.createDataFrame(rows, "id int, x float")


def _files(format: str) -> Callable[[Wanted], DataFrame]:
    def read(wanted: Wanted) -> DataFrame:
        path = str(wanted.folder / f"{format}-{wanted.rows}-{wanted.partitions}")
        if not Path(path).exists():
            options = {"header": True} if format == "csv" else {}
            _range(wanted).write.format(format).options(**options).save(path)
        reader = wanted.spark.read.format(format).schema("id int, x float")
        return (reader.option("header", True) if format == "csv" else reader).load(path)

    return read


def _repartition(wanted: Wanted) -> DataFrame:
    return _with_x(wanted.spark.range(0, wanted.rows, 1, 5)).repartition(wanted.partitions)


def _group_by(wanted: Wanted) -> DataFrame:
    twice = wanted.spark.range(0, 2 * wanted.rows, 1, wanted.partitions)
    return twice.selectExpr(f"id % {wanted.rows} as id").groupBy("id").count().select(
        "id"
    ).transform(_with_x)  # fmt: skip


def _join(wanted: Wanted) -> DataFrame:
    other = wanted.spark.range(0, 2 * wanted.rows, 1, 3).selectExpr("id", "id % 7 / 7.0 as y")
    joined = _range(wanted).join(other.hint("shuffle_hash"), "id")
    return joined.selectExpr("id", "cast(y as float) as x")


def _sort(wanted: Wanted) -> DataFrame:
    return _range(wanted).sort("x")  # many rows have the same x


def _union(wanted: Wanted) -> DataFrame:
    half, spark, parts = wanted.rows // 2, wanted.spark, max(1, wanted.partitions // 2)
    return _with_x(spark.range(0, half, 1, parts).union(spark.range(half, wanted.rows, 1, parts)))


def _cached(wanted: Wanted) -> DataFrame:
    return _repartition(wanted).cache()


def _udf(wanted: Wanted) -> DataFrame:
    from pyspark.sql import functions

    same = functions.udf(lambda value: value, "int")
    return _range(wanted).select(same("id").alias("id"), "x")


def _pandas(wanted: Wanted) -> DataFrame:
    import pandas

    ids = range(wanted.rows)
    frame = pandas.DataFrame({"id": ids, "x": [i % 7 / 7 for i in ids]})
    return wanted.spark.createDataFrame(frame, "id int, x float")


KINDS: dict[str, Callable[[Wanted], Any]] = {
    "range": _range,
    "local data": _local,
    "parquet": _files("parquet"),
    "csv": _files("csv"),
    "json": _files("json"),
    "repartition": _repartition,
    "groupBy": _group_by,
    "join": _join,
    "sort": _sort,
    "union": _union,
    "cached": _cached,
    "udf": _udf,
    "pandas": _pandas,
}
