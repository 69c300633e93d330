"""The DataFrame whose partitions are the ranks, and what makes it the same whenever it is computed.

Every epoch and every restart counts on it: a rank must get the same rows in the same order again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hearth.spark.session import ARROW_CONF
from hearth.spark.slots import local_slots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame, SparkSession

# Types that Spark cannot compare, wherever in a column they stand.
_UNORDERED = ("map", "variant", "interval", "calendarinterval", "object", "geometry", "geography")
# Steps of a plan that bring a partition's rows in the same order whenever they run: scans of what
# the launch pins, and what passes rows on one by one.
_STEADY_SCANS = ("FileSourceScanExec", "LocalTableScanExec", "RangeExec")
_ROW_BY_ROW = ("ProjectExec", "FilterExec", "ColumnarToRowExec", "WholeStageCodegenExec")
_STEADY_STEPS = frozenset((*_STEADY_SCANS, *_ROW_BY_ROW, "InputAdapter"))
# A frame that Spark keeps has the rows of what it keeps, partition by partition.
_KEPT = "InMemoryTableScanExec"
_PLACE = "hearth place"  # a column


def launch_conf(
    spark: SparkSession, world: int, frames: Iterable[DataFrame], pieces: int | None = None
) -> dict[str, str]:
    """Settings under which every attempt of a run is planned, so that all get the same partitions.

    Spark cuts files, ranges and the results of shuffles by the number of cores that it has at the
    moment, which is another one after an executor was lost, and in a later run. What the user set
    stays, else it is cut as `pieces` cores would do it; None: as those that there are now. Spark
    sorts rows before it distributes them, which those of steady frames do not need; nor do these
    have shuffles whose results Spark might cut.
    """
    cores = str(pieces or _cores(spark, world))
    steady = all(map(is_steady, frames))
    sort = "false" if steady else "true"
    conf = {**ARROW_CONF, "spark.sql.execution.sortBeforeRepartition": sort}
    pinned = ["spark.sql.leafNodeDefaultParallelism"]
    first = "spark.sql.adaptive.coalescePartitions.parallelismFirst"
    if not steady and spark.conf.get(first, "true") == "true":
        # Deprecated, which Spark logs whenever it is set, but there is no other way to pin it.
        pinned.append("spark.sql.adaptive.coalescePartitions.minPartitionNum")
    for key in pinned:
        conf[key] = spark.conf.get(key, None) or cores
    return conf


def _cores(spark: SparkSession, world: int) -> int:
    """What Spark would count with now; Spark Connect does not tell, so there it is estimated."""
    if hasattr(spark, "_jsc"):
        return spark.sparkContext.defaultParallelism
    slots = local_slots(spark.conf.get("spark.master", ""), 1)
    return max(2, slots or world * int(spark.conf.get("spark.executor.cores", "1")))


def rank_rows(spark: SparkSession, frames: dict[str, DataFrame], world: int) -> DataFrame:
    """One partition per rank: the rows of the streams, or just one row per rank without any.

    Rows that do not lie as needed are shuffled. As the blocks of a shuffle come in any order, the
    rows of a rank are then put in an order that follows from their content alone, or, which is
    quicker, from their place in frames that bring their rows in the same order every time.
    """
    if not frames:
        return spark.range(0, world, 1, world)
    if len(frames) == 1:
        rows = next(iter(frames.values()))
        if needs_shuffle(rows, world):
            return _shuffled(rows, world, is_steady(rows))
        return in_order_of_content(rows) if _was_shuffled(rows) else rows
    return _shuffled(_in_one(frames), world, all(map(is_steady, frames.values())))


def _shuffled(rows: DataFrame, world: int, steady: bool) -> DataFrame:
    if steady:
        return in_order_of_place(rows, world)
    return in_order_of_content(rows.repartition(world))


def _in_one(frames: dict[str, DataFrame]) -> DataFrame:
    """Two streams as one: a struct column for each, of which one is null."""
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
    """Whether the rows must be shuffled to lie in `world` partitions that a barrier stage accepts.

    Spark refuses barrier stages with a coalesce or limit in them, and asking a plan with exchanges
    for its partitions would run it: both are shuffled without asking.
    """
    if not hasattr(frame, "_jdf"):
        return True
    planned = frame.select("*")  # anew: the frame's own plan may be older than the settings
    plan = planned._jdf.queryExecution().executedPlan().toString()
    if any(word in plan for word in ("Exchange", "Coalesce", "Limit", "Union", "Cartesian")):
        return True
    return not _has_one_number_of_partitions(planned._jdf.queryExecution().toRdd(), world)


def _has_one_number_of_partitions(rdd: Any, world: int) -> bool:
    """Whether all RDDs that the stage of `rdd`, one of the JVM, computes have `world` of them.

    The plan of a DataFrame that was made of an RDD does not show a coalesce() or union() of RDDs.
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


def is_steady(frame: DataFrame) -> bool:
    """Whether each partition of the frame has the same rows in the same order at every time.

    Only what is surely so: of files, ranges and rows of the driver, with columns computed and rows
    left out. Spark Connect does not show the plan.
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
    """Whether RDDs were shuffled behind the rows: the plan of a DataFrame does not show it."""
    return hasattr(frame, "_jdf") and b"+-" in (frame.rdd.toDebugString() or b"")


def in_order_of_place(frame: DataFrame, world: int) -> DataFrame:
    """The rows of a steady frame in `world` partitions, ordered by a hash of the places they had.

    A hash, because files may be in the order of their labels. Places are numbers of 64 bits and all
    differ; so do these hashes, as XXH64 of one number can be undone. By one number alone Spark
    sorts without comparing.
    """
    from pyspark.sql import functions

    name, taken = _PLACE, {column.lower() for column in frame.columns}
    while name in taken:
        name += "'"
    place = functions.xxhash64(functions.monotonically_increasing_id())
    placed = frame.withColumn(name, place).repartition(world)
    return placed.sortWithinPartitions(_column(name)).drop(name)


def in_order_of_content(frame: DataFrame) -> DataFrame:
    """Each partition sorted by a hash of its rows, equal hashes by the columns themselves.

    A hash, because rows in the order of their values would make minibatches of equal labels; and as
    one number it is what Spark sorts by fastest. Rows that are equal in all columns that can be
    compared keep the order in which they came; so do rows that differ in the sign of a zero, or in
    the bits of a NaN, alone, which Spark compares and hashes as equal.
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
