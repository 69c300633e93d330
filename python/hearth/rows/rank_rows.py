"""Builds the DataFrame whose partitions are the ranks, reproducibly.

Every epoch and every restart relies on it: a rank must get the same rows in the same order again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hearth.spark.session import ARROW_CONF
from hearth.spark.slots import local_slots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame, SparkSession

# Types that Spark cannot compare, at any depth in a column.
_UNORDERED = ("map", "variant", "interval", "calendarinterval", "object", "geometry", "geography")
# Plan nodes that produce a partition's rows in a fixed order: scans of inputs pinned at the launch,
# and nodes that pass rows on one by one.
_STEADY_SCANS = ("FileSourceScanExec", "LocalTableScanExec", "RangeExec")
_ROW_BY_ROW = ("ProjectExec", "FilterExec", "ColumnarToRowExec", "WholeStageCodegenExec")
_STEADY_STEPS = frozenset((*_STEADY_SCANS, *_ROW_BY_ROW, "InputAdapter"))
# A cached frame returns the cached rows, partition by partition.
_KEPT = "InMemoryTableScanExec"
_POSITION = "hearth position"  # a column


def launch_conf(
    spark: SparkSession, world: int, frames: Iterable[DataFrame], pieces: int | None = None
) -> dict[str, str]:
    """Settings for the plan of every attempt of a run, so that all get the same partitions.

    Spark divides files, ranges and results of shuffles by the current number of cores, which
    changes after the loss of an executor, and in a later run. The user's settings are kept;
    otherwise rows are divided as for `pieces` cores; None: the current number. Spark sorts rows
    before it distributes them, which deterministic frames do not need; these also have no shuffles
    whose results Spark might divide.
    """
    default = str(pieces or cores(spark, world))
    deterministic = all(map(is_deterministic, frames))
    sort = "false" if deterministic else "true"
    conf = {**ARROW_CONF, "spark.sql.execution.sortBeforeRepartition": sort}
    pinned = ["spark.sql.leafNodeDefaultParallelism"]
    first = "spark.sql.adaptive.coalescePartitions.parallelismFirst"
    if not deterministic and spark.conf.get(first, "true") == "true":
        # Deprecated, which Spark logs whenever it is set, but there is no alternative.
        pinned.append("spark.sql.adaptive.coalescePartitions.minPartitionNum")
    for key in pinned:
        conf[key] = spark.conf.get(key, None) or default
    return conf


def cores(spark: SparkSession, world: int) -> int:
    """Spark's current default parallelism; estimated with Spark Connect, which does not report
    it."""
    if hasattr(spark, "_jsc"):
        return spark.sparkContext.defaultParallelism
    slots = local_slots(spark.conf.get("spark.master", ""), 1)
    return max(2, slots or world * int(spark.conf.get("spark.executor.cores", "1")))


def rank_rows(spark: SparkSession, frames: dict[str, DataFrame], world: int) -> DataFrame:
    """One partition per rank: the rows of the streams, or one row per rank without streams.

    Rows are shuffled if their partitions do not fit. As blocks of a shuffle arrive in any order, a
    rank's rows are then sorted by their content, or, which is faster, by their position in
    deterministic frames.
    """
    if not frames:
        return spark.range(0, world, 1, world)
    if len(frames) == 1:
        return divided_rows(next(iter(frames.values())), world)[0]
    return _shuffled(_in_one(frames), world, all(map(is_deterministic, frames.values())))


def divided_rows(rows: DataFrame, world: int) -> tuple[DataFrame, bool]:
    """rank_rows() of one frame, and whether its rows are shuffled for it."""
    if needs_shuffle(rows, world):
        return _shuffled(rows, world, is_deterministic(rows)), True
    return (sorted_by_content(rows) if _was_shuffled(rows) else rows), False


def _shuffled(rows: DataFrame, world: int, deterministic: bool) -> DataFrame:
    if deterministic:
        return sorted_by_position(rows, world)
    return sorted_by_content(rows.repartition(world))


def _in_one(frames: dict[str, DataFrame]) -> DataFrame:
    """Joins two streams: a struct column for each, one of which is null in each row."""
    from pyspark.sql import functions

    types = {name: frame.schema for name, frame in frames.items()}
    parts = []
    for name, frame in frames.items():
        columns = [
            functions.struct(*map(_column, frame.columns)).alias(other)
            if other == name
            else functions.lit(None).cast(types[other]).alias(other)
            for other in frames
        ]
        parts.append(frame.select(*columns))
    return parts[0].unionByName(parts[1])


def needs_shuffle(frame: DataFrame, world: int) -> bool:
    """Whether rows must be shuffled into `world` partitions that a barrier stage accepts.

    Spark refuses barrier stages with a coalesce or limit, and reading the partitions of a plan with
    exchanges would run it: both are shuffled without a check.
    """
    if not hasattr(frame, "_jdf"):
        return True
    planned = frame.select("*")  # a new plan: the frame's may be older than the settings
    plan = planned._jdf.queryExecution().executedPlan().toString()
    if any(word in plan for word in ("Exchange", "Coalesce", "Limit", "Union", "Cartesian")):
        return True
    return not _has_one_number_of_partitions(planned._jdf.queryExecution().toRdd(), world)


def _has_one_number_of_partitions(rdd: Any, world: int) -> bool:
    """Whether all RDDs in the stage of `rdd`, a JVM object, have `world` partitions.

    The plan of a DataFrame created from an RDD does not show a coalesce() or union() of RDDs.
    """
    waiting, seen = [rdd], set()
    while waiting:
        rdd = waiting.pop()
        if rdd.id() in seen:
            continue
        seen.add(rdd.id())
        if rdd.getNumPartitions() != world:
            return False
        depended = rdd.dependencies()
        for i in range(depended.size()):
            dependency = depended.apply(i)
            if not dependency.getClass().getSimpleName().endswith("ShuffleDependency"):
                waiting.append(dependency.rdd())
    return True


def is_deterministic(frame: DataFrame) -> bool:
    """Whether each partition of the frame always has the same rows in the same order.

    True only for certain cases: files, ranges and rows of the driver, with computed columns and
    filters. Spark Connect does not show the plan.
    """
    if not hasattr(frame, "_jdf"):
        return False
    waiting = [frame.select("*")._jdf.queryExecution().executedPlan()]
    while waiting:
        step = waiting.pop()
        if step.getClass().getSimpleName() == _KEPT:
            waiting.append(step.relation().cachedPlan())
            continue
        if step.getClass().getSimpleName() not in _STEADY_STEPS:
            return False
        children = step.children()
        waiting += [children.apply(i) for i in range(children.size())]
    return True


def _was_shuffled(frame: DataFrame) -> bool:
    """Whether the rows come from shuffled RDDs, which the plan of a DataFrame does not show."""
    return hasattr(frame, "_jdf") and b"+-" in (frame.rdd.toDebugString() or b"")


def sorted_by_position(frame: DataFrame, world: int) -> DataFrame:
    """The rows of a deterministic frame in `world` partitions, sorted by a hash of their positions.

    A hash, because files may be sorted by label. Positions are unique 64-bit numbers; so are these
    hashes, as XXH64 of a single number is invertible. Spark sorts by a single number without
    comparisons.
    """
    from pyspark.sql import functions

    name, taken = _POSITION, {column.lower() for column in frame.columns}
    while name in taken:
        name += "'"
    hashed = functions.xxhash64(functions.monotonically_increasing_id())
    placed = frame.withColumn(name, hashed).repartition(world)
    return placed.sortWithinPartitions(_column(name)).drop(name)


def sorted_by_content(frame: DataFrame) -> DataFrame:
    """Sorts each partition by a hash of its rows, equal hashes by the columns themselves.

    A hash, because rows sorted by value would form minibatches of equal labels; and Spark sorts
    fastest by a single number. Rows that are equal in all comparable columns keep their order; so
    do rows that differ only in the sign of a zero, or in the bits of a NaN, which Spark compares
    and hashes as equal.
    """
    from pyspark.sql import functions

    keys = [_column(field.name) for field in frame.schema.fields if _is_ordered(field.dataType)]
    return frame.sortWithinPartitions(functions.xxhash64(*keys), *keys) if keys else frame


def _column(name: str) -> Column:
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


def _is_ordered(kind: Any) -> bool:
    if hasattr(kind, "sqlType"):
        return _is_ordered(kind.sqlType())
    if hasattr(kind, "fields"):
        return all(_is_ordered(field.dataType) for field in kind.fields)
    if hasattr(kind, "elementType"):
        return _is_ordered(kind.elementType)
    return kind.typeName() not in _UNORDERED
