"""Builds the DataFrame that has one partition per rank, reproducibly.

Epochs and restarts rely on this: a rank must receive the same rows in the same order again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hearth.spark.session import ARROW_CONF
from hearth.spark.slots import local_slots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame, SparkSession

# Types that Spark cannot compare, even nested in a column.
_UNORDERED = ("map", "variant", "interval", "calendarinterval", "object", "geometry", "geography")
# Plan nodes that produce a partition's rows in a fixed order: scans of inputs that are pinned at
# the launch, and nodes that process rows one by one.
_STEADY_SCANS = ("FileSourceScanExec", "LocalTableScanExec", "RangeExec")
_ROW_BY_ROW = ("ProjectExec", "FilterExec", "ColumnarToRowExec", "WholeStageCodegenExec")
_STEADY_STEPS = frozenset((*_STEADY_SCANS, *_ROW_BY_ROW, "InputAdapter"))
# The plan node that scans a cached frame, whose partitions are those of the cached plan.
_KEPT = "InMemoryTableScanExec"
_POSITION = "hearth position"  # a temporary column


def launch_conf(
    spark: SparkSession, world: int, frames: Iterable[DataFrame], pieces: int | None = None
) -> dict[str, str]:
    """Spark settings for every attempt of a run, so that all attempts plan the same partitions.

    Spark divides files, ranges and shuffle results by the current number of cores, which changes if
    an executor is lost, and in a later run. The user's settings take precedence; otherwise rows are
    divided as if there were `pieces` cores (None: the current number). Deterministic frames do not
    need Spark's sort before rows are distributed; they also have no shuffles whose results Spark
    might divide.
    """
    default = str(pieces or cores(spark, world))
    deterministic = all(map(is_deterministic, frames))
    sort = "false" if deterministic else "true"
    conf = {**ARROW_CONF, "spark.sql.execution.sortBeforeRepartition": sort}
    pinned = ["spark.sql.leafNodeDefaultParallelism"]
    first = "spark.sql.adaptive.coalescePartitions.parallelismFirst"
    if not deterministic and spark.conf.get(first, "true") == "true":
        # Spark logs that this setting is deprecated, but there is no alternative.
        pinned.append("spark.sql.adaptive.coalescePartitions.minPartitionNum")
    for key in pinned:
        conf[key] = spark.conf.get(key, None) or default
    return conf


def cores(spark: SparkSession, world: int) -> int:
    """Spark's default parallelism, or an estimate with Spark Connect, which does not report it."""
    if hasattr(spark, "_jsc"):
        return spark.sparkContext.defaultParallelism
    slots = local_slots(spark.conf.get("spark.master", ""), 1)
    return max(2, slots or world * int(spark.conf.get("spark.executor.cores", "1")))


def rank_rows(spark: SparkSession, frames: dict[str, DataFrame], world: int) -> DataFrame:
    """A DataFrame with a partition per rank: the frames' rows, or one row each without frames.

    Rows are shuffled if the partitions do not fit. The blocks of a shuffle arrive in any order, so
    a rank's rows are then sorted: by position if all frames are deterministic, which is faster, and
    otherwise by content.
    """
    if not frames:
        return spark.range(0, world, 1, world)
    if len(frames) == 1:
        return divided_rows(next(iter(frames.values())), world)[0]
    return _shuffled(_in_one(frames), world, all(map(is_deterministic, frames.values())))


def divided_rows(rows: DataFrame, world: int) -> tuple[DataFrame, bool]:
    """The result of rank_rows() for one frame, and whether the rows are shuffled."""
    if needs_shuffle(rows, world):
        return _shuffled(rows, world, is_deterministic(rows)), True
    return (sorted_by_content(rows) if _was_shuffled(rows) else rows), False


def _shuffled(rows: DataFrame, world: int, deterministic: bool) -> DataFrame:
    if deterministic:
        return sorted_by_position(rows, world)
    return sorted_by_content(rows.repartition(world))


def _in_one(frames: dict[str, DataFrame]) -> DataFrame:
    """Combines two frames: each becomes a struct column, which is null in the other's rows."""
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
    """Whether rows must be shuffled to have `world` partitions that a barrier stage accepts.

    Always true for a plan with a coalesce or limit, which Spark refuses in barrier stages, and for
    a plan with exchanges, which would be run to determine its partitions.
    """
    if not hasattr(frame, "_jdf"):
        return True
    planned = frame.select("*")  # replan with the current settings
    plan = planned._jdf.queryExecution().executedPlan().toString()
    if any(word in plan for word in ("Exchange", "Coalesce", "Limit", "Union", "Cartesian")):
        return True
    return not _has_one_number_of_partitions(planned._jdf.queryExecution().toRdd(), world)


def _has_one_number_of_partitions(rdd: Any, world: int) -> bool:
    """Whether all RDDs in the stage of `rdd` (a JVM object) have `world` partitions.

    The plan does not show this if the DataFrame was created from a coalesce() or union() of RDDs.
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

    True only if that is certain: for files, ranges and rows of the driver, with computed columns
    and filters. Always false with Spark Connect, which does not show the plan.
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
    """Whether the rows come from shuffled RDDs, which a DataFrame's plan does not show."""
    return hasattr(frame, "_jdf") and b"+-" in (frame.rdd.toDebugString() or b"")


def sorted_by_position(frame: DataFrame, world: int) -> DataFrame:
    """Repartitions a deterministic frame; sorts each partition by a hash of the rows' positions.

    Hashes are used because files may be sorted by label. Positions are unique 64-bit numbers, and
    so are their hashes, because XXH64 of a single number is invertible. Spark sorts by a single
    number without comparisons.
    """
    from pyspark.sql import functions

    name, taken = _POSITION, {column.lower() for column in frame.columns}
    while name in taken:
        name += "'"
    hashed = functions.xxhash64(functions.monotonically_increasing_id())
    placed = frame.withColumn(name, hashed).repartition(world)
    return placed.sortWithinPartitions(_column(name)).drop(name)


def sorted_by_content(frame: DataFrame) -> DataFrame:
    """Sorts each partition by a hash of the rows, and rows with equal hashes by their columns.

    A hash is used because rows sorted by value would form minibatches of equal labels, and because
    Spark sorts fastest by a single number. Rows keep their order if they are equal in all
    comparable columns, or differ only in the sign of a zero or the bits of a NaN, which Spark
    compares and hashes as equal.
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
