"""Randomized trainings and feeds: each row is trained on exactly once an epoch.

A draw is a feed (Caffe's DataFrames, TensorFlow's RDDs), a source, numbers of rows, partitions,
ranks and devices, a batch size, and perhaps a kill, a task that fails at first, and one so slow
that Spark speculates. `draws.py --seeds 5 17` repeats the draws of two seeds, `--draws 200` makes
200 new ones. All share a Master and two Workers with different addresses, as Spark starts no second
copy of a task on the same host.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spark"))

import conftest
import counted_feed
import faults
import frames
from attackers import feed_workers
from counted_net import CountedNet, Tally
from standalone import StandaloneCluster, WorkerHost

HERE = Path(__file__).resolve().parent
CAFFE_SOURCES = ("range", "local data", "parquet", "csv", "repartition", "groupBy", "sort", "union")
FEED_SOURCES = (
    "parallelize", "map", "repartition", "sorted within", "sortBy", "DataFrame.rdd", "DataFrame",
)  # fmt: skip
# Rows of RDD.repartition may change their order when Spark recomputes them: then an error.
REFUSED = "in another order"
KILLS = {"caffe": ("trainer", "worker", "executor"), "tensorflow": ("executor", "feed worker")}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.2",
    "spark.speculation.minTaskRuntime": "300ms",
    "spark.sql.shuffle.partitions": "4",
}
_SLOW_S = 2.0


@dataclass(frozen=True)
class Draw:
    """A training, and its injected faults."""

    seed: int
    feed: str
    source: str
    rows: int
    partitions: int
    batch: int
    ranks: int
    devices: int
    epochs: int
    kill: str  # "" for none
    kill_at: float  # share of the rows of all epochs
    fails_once: bool
    is_slow_once: bool


def draw(seed: int) -> Draw:
    """The draw of a seed."""
    r = random.Random(seed)
    feed = r.choice(("caffe", "tensorflow"))
    return Draw(
        seed=seed,
        feed=feed,
        source=r.choice(CAFFE_SOURCES if feed == "caffe" else FEED_SOURCES),
        rows=r.randint(50, 1500),
        partitions=r.choice((1, 2, 3, 8, 16, 48)),
        batch=r.choice((1, 4, 7, 16, 64)),
        ranks=r.randint(1, 3),
        devices=r.choice((1, 1, 2)) if feed == "caffe" else 1,
        epochs=r.randint(1, 3),
        kill=r.choice(("", *KILLS[feed])),
        kill_at=r.uniform(0.05, 0.9),
        fails_once=r.random() < 0.3,
        is_slow_once=r.random() < 0.3,
    )


def with_trouble(drawn: Draw, folder: Path) -> Callable[[int, Iterator[Any]], Iterator[Any]]:
    """A pass over a partition's items: the first attempt at one fails, or is slow, half through.

    A later attempt leaves a file "again-…" in `folder`.
    """
    unlucky = random.Random(drawn.seed).randrange(drawn.partitions)
    share = max(1, drawn.rows // drawn.partitions // 2)
    fails, slow = drawn.fails_once, drawn.is_slow_once

    def trouble(index: int, items: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        task = TaskContext.get()
        first = task.attemptNumber() == 0
        if not first:
            (folder / f"again-{task.taskAttemptId()}").touch()
        for number, item in enumerate(items):
            if first and number == share and index == unlucky:
                if slow:
                    time.sleep(_SLOW_S)
                if fails:
                    raise OSError("the first attempt fails")
            yield item

    return trouble


def source_frame(drawn: Draw, spark: Any, folder: Path) -> Any:
    """The rows of a Caffe draw. Trouble comes to tasks before a shuffle: a rank is no task that
    Spark may run twice."""
    frame = frames.KINDS[drawn.source](frames.Wanted(spark, folder, drawn.rows, drawn.partitions))
    if not drawn.fails_once and not drawn.is_slow_once:
        return frame
    partitions = max(1, frame.rdd.getNumPartitions())
    trouble = with_trouble(replace(drawn, partitions=partitions), folder)

    def pass_on(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        # A batch at a time: half of the rows is about half of one.
        index = TaskContext.get().partitionId()
        for batch in batches:
            rows = list(trouble(index, iter(range(batch.num_rows))))
            yield batch.slice(0, len(rows))

    return frame.mapInArrow(pass_on, frame.schema).repartition(drawn.partitions)


def source_rdd(drawn: Draw, spark: Any, folder: Path, epoch: int) -> Any:
    """The ids of one epoch of a TensorFlow draw: an RDD, or a DataFrame."""
    sc, first = spark.sparkContext, epoch * drawn.rows
    ids = sc.parallelize(range(first, first + drawn.rows), drawn.partitions)
    if drawn.source == "repartition":
        ids = ids.map(lambda i: i).repartition(drawn.partitions)
    elif drawn.source == "sorted within":
        pairs = ids.map(lambda i: (i, None))
        ids = pairs.repartitionAndSortWithinPartitions(drawn.partitions).keys()
    elif drawn.source == "sortBy":
        ids = ids.sortBy(lambda i: -i, numPartitions=drawn.partitions)
    elif drawn.source.startswith("DataFrame"):
        frame = spark.range(first, first + drawn.rows, 1, drawn.partitions)
        if drawn.source == "DataFrame":
            return frame.mapInArrow(_of_batches(with_trouble(drawn, folder)), frame.schema)
        ids = frame.rdd
    if drawn.source != "parallelize" or drawn.fails_once or drawn.is_slow_once:
        ids = ids.mapPartitionsWithIndex(with_trouble(drawn, folder))
    return ids


def _of_batches(trouble: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        rows = (batch.slice(i, 1) for batch in batches for i in range(batch.num_rows))
        return trouble(TaskContext.get().partitionId(), rows)

    return run


@contextmanager
def strike_when(condition: Callable[[], bool], victims: Callable[[], list[int]]) -> Iterator[None]:
    """Kills one of `victims` once `condition`, unless what is inside ends before."""
    over = threading.Event()

    def strike() -> None:
        while not condition():
            if over.wait(0.01):
                return
        for pid in sorted(victims())[:1]:
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=strike, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def run_caffe(drawn: Draw, spark: Any, folder: Path) -> Tally:
    """Trains for about the epochs drawn; what the model has learned from."""
    from hearth.caffeonspark import CaffeOnSpark, DataSource

    at_once = drawn.batch * drawn.ranks * drawn.devices
    iterations = max(2, drawn.rows * drawn.epochs // at_once)
    net = CountedNet(
        folder / "net", drawn.rows, drawn.batch, iterations,
        snapshot=max(1, iterations // 6), pace_s=min(0.01, 1 / iterations),
    )  # fmt: skip
    flags = {"clusterSize": str(drawn.ranks), "devices": str(drawn.devices), "maxRestarts": "3"}
    source = DataSource(spark).fromDataFrame(
        net.config(spark, **flags), source_frame(drawn, spark, folder), True
    )

    def on_event(event: dict[str, Any]) -> None:
        if event.get("event") == "restart":
            net.begin(event["generation"])

    def due() -> bool:
        return max(net.progress(0).values(), default=-1) >= drawn.kill_at * iterations

    def victims() -> list[int]:
        return [faults.victim(drawn.kill, pid) for pid in faults.trainers()]

    with strike_when(due if drawn.kill else lambda: False, victims):
        CaffeOnSpark(spark, on_event=on_event).train(source)
    return net.tally()


def run_tensorflow(drawn: Draw, spark: Any, folder: Path) -> Tally:
    """Feeds a cluster; what its nodes have learned from."""
    from tensorflowonspark import TFCluster

    plan = counted_feed.FeedPlan(str(folder), drawn.batch, pace_s=0.3 * drawn.batch / drawn.rows)
    mode = TFCluster.InputMode.SPARK
    cluster = TFCluster.run(
        spark.sparkContext, counted_feed.learn, plan, drawn.ranks, 0, input_mode=mode, restart=True
    )  # fmt: skip

    def due() -> bool:
        return counted_feed.rows_given(folder) >= drawn.kill_at * drawn.rows * drawn.epochs

    def victims() -> list[int]:
        if drawn.kill == "feed worker":
            return feed_workers()
        return [node["executor_pid"] for node in cluster.cluster_info]

    try:
        with strike_when(due if drawn.kill else lambda: False, victims):
            for epoch in range(drawn.epochs):
                cluster.train(source_rdd(drawn, spark, folder, epoch), num_epochs=1)
            cluster.shutdown()
    except BaseException:
        with suppress(Exception):
            cluster.shutdown(timeout=30)
        raise
    return counted_feed.tally(folder, drawn.rows, drawn.epochs)


def run(drawn: Draw, spark: Any, folder: Path) -> str:
    """Empty where all went well, else what did not."""
    folder.mkdir()
    try:
        found = (run_caffe if drawn.feed == "caffe" else run_tensorflow)(drawn, spark, folder)
    except Exception as error:
        if drawn.source == "repartition" and REFUSED in str(error):
            return ""
        return traceback.format_exc(limit=-3)
    return "" if found.exact else str(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*")
    parser.add_argument("--draws", type=int, default=200)
    flags = parser.parse_args()
    first = int(time.time())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the Workers end, too
    seeds = flags.seeds or range(first, first + flags.draws)
    os.environ.update([conftest.MARK.split("=")])
    os.environ["PYTHONPATH"] = str(HERE)
    failed = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-draws-")))
        hosts = [WorkerHost("127.0.0.1"), WorkerHost("127.0.0.2")]
        cluster = StandaloneCluster(folder, hosts, cores=2, conf=SPECULATION)
        stack.enter_context(cluster)
        from hearth.spark import session as spark_session

        spark = spark_session.start("hearth-draws", executors=2, master=cluster.url)
        stack.callback(spark.stop)
        for seed in seeds:
            start = time.monotonic()
            said = run(draw(seed), spark, folder / f"draw-{seed}")
            failed += [seed] if said else []
            again = len(list((folder / f"draw-{seed}").glob("again-*")))
            print(
                f"{draw(seed)}: {time.monotonic() - start:.1f} s, {again} further attempts,"
                f" {said or 'exact'}",
                flush=True,
            )
    print(f"{len(seeds)} draws, failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
