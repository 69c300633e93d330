"""The feed of a TensorFlow cluster against Spark alone, over the same cached rows in the same run.

`rdd/...`: `cluster.train(rdd)` and next_batch(), against a task that only iterates the rows;
`.../arrays`: the same with next_numpy().
`dataframe/...`: `cluster.train(df)` with next_numpy(), against a mapInArrow that only looks at the
batches. Rows per second of wall time, and `.../cpu`: microseconds of CPU per row, all processes of
the session together. One executor, two partitions. `.../upstream`: the same rows, fewer of them,
by TensorFlowOnSpark's mechanism. `files/...`: read by the node itself, GB/s per core.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psutil
from pyspark import cloudpickle

import report
import tf_feed_fixed
import tf_feed_upstream
from hearth import spark_session
from hearth.tensorflowonspark import TFCluster

MARK = f"HEARTH_BENCH_MARK={uuid.uuid4()}"
# name: (rows, batch size, SQL of the columns)
FLOATS = "transform(sequence(1, {n}), i -> cast((id * 31 + i) % 1000 as float)) as x, id as label"
SHAPES = {
    "784 floats": (20_000, 100, FLOATS.format(n=784)),
    "10 floats": (400_000, 256, FLOATS.format(n=10)),
    "150 KB images": (
        1_500,
        32,
        "cast(repeat(cast(id % 10 as string), 150528) as binary) as x, id",
    ),
}
# Upstream needs 0.1 to 1 ms of CPU for a row, so a few of them tell its cost per row.
UPSTREAM_FEWER = 10


def take_rows(batch_size: int, ctx: Any) -> None:
    """A node that only takes rows."""
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        feed.next_batch(batch_size)


def take_columns(batch_size: int, ctx: Any) -> None:
    """A node that takes minibatches as arrays, an RDD's as one, and looks at one value of each."""
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        batch = feed.next_numpy(batch_size)
        if batch is not None:
            (batch["x"] if isinstance(batch, dict) else batch)[0]


def iterate(rows: Iterator[Any]) -> None:
    for _ in rows:
        pass


def look(batches: Iterator[Any]) -> Iterator[Any]:
    """Looks at the values of each batch as an array, as a consumer in the task would."""
    from hearth.tensorflowonspark.columns import column_to_numpy

    for batch in batches:
        column_to_numpy(batch.column(0))
        yield batch.slice(0, 0).select([1])


def cpu_seconds() -> float:
    """CPU time of all processes of this session, as far as they live."""
    total = 0.0
    for process in psutil.process_iter():
        try:
            if process.environ().get("HEARTH_BENCH_MARK") == MARK.split("=")[1]:
                total += sum(process.cpu_times()[:2])
        except psutil.Error:
            continue
    return total


def measured(call: Callable[[], Any], rows: int) -> tuple[float, float]:
    """(rows per second, microseconds of CPU per row) of one call."""
    before = cpu_seconds()
    wall = report.seconds(call)
    return rows / wall, (cpu_seconds() - before) / rows * 1e6


def bench(
    table: report.Report,
    name: str,
    rows: int,
    rounds: int,
    pair: tuple[Callable, Callable, str],
    peer_rows: int = 0,
) -> None:
    """Runs ours and the peer in turn and adds the two rows of a case. 0 `peer_rows`: as many."""
    ours, peer, peer_name = pair
    a, b = report.alternate(
        rounds, lambda: measured(ours, rows), lambda: measured(peer, peer_rows or rows)
    )
    rates, cpus = zip(*a, strict=True)
    peer_rates, peer_cpus = zip(*b, strict=True)
    table.add(name, ours=rates, peer=peer_rates, peer_name=peer_name, unit="rows/s")
    table.add(
        f"{name}/cpu",
        ours=cpus,
        peer=peer_cpus,
        peer_name=peer_name,
        unit="us/row",
        higher_is_better=False,
    )


def bench_shape(spark: Any, table: report.Report, shape: str, rounds: int) -> None:
    """The DataFrame's row and the RDD's row of one shape."""
    count, batch_size, columns = SHAPES[shape]
    frame = spark.sql(f"select {columns} from range(0, {count}, 1, 2)").cache()
    frame.count()
    look_at = frame.mapInArrow(look, f"{frame.columns[1]} bigint")
    pair = (look_at.count, "mapInArrow that looks")
    bench_feed(
        spark, table, f"dataframe/{shape}", (take_columns, batch_size, frame, count), pair, rounds
    )
    as_row = bytes if "images" in shape else list
    rows = frame.rdd.map(lambda row: as_row(row.x)).cache()
    rows.count()
    frame.unpersist()
    pair = (lambda: rows.foreachPartition(iterate), "foreachPartition that iterates")
    bench_feed(spark, table, f"rdd/{shape}", (take_rows, batch_size, rows, count), pair, rounds)
    if "floats" in shape:
        ours = (take_columns, batch_size, rows, count)
        bench_feed(spark, table, f"rdd/{shape}/arrays", ours, pair, rounds)
    rows.unpersist()
    bench_upstream(spark, table, shape, rounds)


def bench_upstream(spark: Any, table: report.Report, shape: str, rounds: int) -> None:
    """Our feed of an RDD and of a DataFrame against upstream's mechanism; upstream has one way."""
    names = [f"{kind}/{shape}/upstream" for kind in ("rdd", "dataframe")]
    if not any(table.wants(name) for name in names):
        return
    count, batch_size, columns = SHAPES[shape]
    fewer = count // UPSTREAM_FEWER
    as_row = bytes if "images" in shape else list
    frame = spark.sql(f"select {columns} from range(0, {count}, 1, 2)").cache()
    rows = frame.rdd.map(lambda row: as_row(row.x)).cache()
    few = spark.sql(f"select {columns} from range(0, {fewer}, 1, 2)").rdd
    few = few.map(lambda row: as_row(row.x)).cache()
    rows.count(), frame.count(), few.count()
    mode = TFCluster.InputMode.SPARK
    with tf_feed_upstream.node(batch_size) as feed:
        for name, take, data in zip(names, (take_rows, take_columns), (rows, frame), strict=True):
            if table.wants(name):
                with TFCluster.run(spark, take, batch_size, 1, 0, input_mode=mode) as cluster:
                    ours = partial(cluster.train, data, num_epochs=1)
                    pair = (ours, partial(feed, few), "upstream's mechanism")
                    bench(table, name, count, min(rounds, 3), pair, fewer)
    for data in (frame, rows, few):
        data.unpersist()


def bench_feed(
    spark: Any, table: report.Report, name: str, feed: tuple, peer: tuple, rounds: int
) -> None:
    """One case: a cluster of one node that takes the rows, and its peer."""
    if not table.wants(name):
        return
    take, batch_size, data, count = feed
    mode = TFCluster.InputMode.SPARK
    with TFCluster.run(spark, take, batch_size, 1, 0, input_mode=mode) as cluster:
        ours = partial(cluster.train, data, num_epochs=1)
        bench(table, name, count, rounds, (ours, *peer))


def main() -> None:
    flags = report.arguments(__doc__.splitlines()[0]).parse_args()
    os.environ.update([MARK.split("=")])
    for module in (sys.modules[__name__], tf_feed_fixed, tf_feed_upstream):
        cloudpickle.register_pickle_by_value(module)
    # The JVM of a long-lived cluster: Spark's own options.
    spark = spark_session.start("bench-tf-feed", executors=1, jvm_options="")
    table = report.Report(flags.only)
    tf_feed_fixed.bench_files(table, flags.rounds)
    tf_feed_fixed.bench_times(spark, table, flags.rounds)
    tf_feed_fixed.bench_memory(spark, table)
    for shape in SHAPES:
        bench_shape(spark, table, shape, flags.rounds)
    table.save(flags.json)


if __name__ == "__main__":
    main()
