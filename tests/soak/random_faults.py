"""Randomized trainings and feeds, in which each row must be trained on exactly once per epoch.

A case has a feed (Caffe's DataFrames, TensorFlow's RDDs), a source, numbers of rows, partitions,
ranks and devices, a batch size, and perhaps a kill, a task that first fails, and a task that is so
slow that Spark speculates. `random_faults.py --seeds 5 17` repeats two cases, `--cases 200` runs
200 new ones. All cases share a Master and two Workers with different addresses, because Spark
starts no second copy of a task on the same host.
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
from counted_net import CountedNet, Tally
from fault_threads import feed_workers
from standalone import StandaloneCluster, WorkerHost

HERE = Path(__file__).resolve().parent
CAFFE_SOURCES = ("range", "local data", "parquet", "csv", "repartition", "groupBy", "sort", "union")
FEED_SOURCES = (
    "parallelize", "map", "repartition", "sorted within", "sortBy", "DataFrame.rdd", "DataFrame",
)  # fmt: skip
# The error if recomputing RDD.repartition() has changed the order of its rows.
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
class Case:
    """A training, and the faults to inject."""

    seed: int
    feed: str
    source: str
    rows: int
    partitions: int
    batch: int
    ranks: int
    devices: int
    epochs: int
    kill: str  # "" if nothing is killed
    kill_at: float  # after this fraction of all epochs' rows
    fails_once: bool
    is_slow_once: bool


def case_of(seed: int) -> Case:
    """The case that a seed determines."""
    r = random.Random(seed)
    feed = r.choice(("caffe", "tensorflow"))
    return Case(
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


def with_faults(case: Case, folder: Path) -> Callable[[int, Iterator[Any]], Iterator[Any]]:
    """A function for partitions' items: a partition's first attempt fails or is slow midway.

    A later attempt creates a file "again-…" in `folder`.
    """
    unlucky = random.Random(case.seed).randrange(case.partitions)
    share = max(1, case.rows // case.partitions // 2)
    fails, slow = case.fails_once, case.is_slow_once

    def faulty(index: int, items: Iterator[Any]) -> Iterator[Any]:
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

    return faulty


def source_frame(case: Case, spark: Any, folder: Path) -> Any:
    """The rows of a Caffe case. Faults are injected before a shuffle, because Spark may repeat only
    those tasks, not ranks.
    """
    frame = frames.KINDS[case.source](frames.Wanted(spark, folder, case.rows, case.partitions))
    if not case.fails_once and not case.is_slow_once:
        return frame
    partitions = max(1, frame.rdd.getNumPartitions())
    faulty = with_faults(replace(case, partitions=partitions), folder)

    def pass_on(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        # Applied to each batch, so "half of the rows" is about half of a batch.
        index = TaskContext.get().partitionId()
        for batch in batches:
            rows = list(faulty(index, iter(range(batch.num_rows))))
            yield batch.slice(0, len(rows))

    return frame.mapInArrow(pass_on, frame.schema).repartition(case.partitions)


def source_rdd(case: Case, spark: Any, folder: Path, epoch: int) -> Any:
    """The ids of one epoch of a TensorFlow case, as an RDD or a DataFrame."""
    sc, first = spark.sparkContext, epoch * case.rows
    ids = sc.parallelize(range(first, first + case.rows), case.partitions)
    if case.source == "repartition":
        ids = ids.map(lambda i: i).repartition(case.partitions)
    elif case.source == "sorted within":
        pairs = ids.map(lambda i: (i, None))
        ids = pairs.repartitionAndSortWithinPartitions(case.partitions).keys()
    elif case.source == "sortBy":
        ids = ids.sortBy(lambda i: -i, numPartitions=case.partitions)
    elif case.source.startswith("DataFrame"):
        frame = spark.range(first, first + case.rows, 1, case.partitions)
        if case.source == "DataFrame":
            return frame.mapInArrow(_of_batches(with_faults(case, folder)), frame.schema)
        ids = frame.rdd
    if case.source != "parallelize" or case.fails_once or case.is_slow_once:
        ids = ids.mapPartitionsWithIndex(with_faults(case, folder))
    return ids


def _of_batches(faulty: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        rows = (batch.slice(i, 1) for batch in batches for i in range(batch.num_rows))
        return faulty(TaskContext.get().partitionId(), rows)

    return run


@contextmanager
def kill_when(condition: Callable[[], bool], victims: Callable[[], list[int]]) -> Iterator[None]:
    """Kills one of `victims` once `condition` is true, unless the block has ended before."""
    over = threading.Event()

    def kill() -> None:
        while not condition():
            if over.wait(0.01):
                return
        for pid in sorted(victims())[:1]:
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def run_caffe(case: Case, spark: Any, folder: Path) -> Tally:
    """Trains for about `epochs` epochs; returns a tally of the rows it learned from."""
    from hearth.caffeonspark import CaffeOnSpark, DataSource

    at_once = case.batch * case.ranks * case.devices
    iterations = max(2, case.rows * case.epochs // at_once)
    net = CountedNet(
        folder / "net", case.rows, case.batch, iterations,
        snapshot=max(1, iterations // 6), pace_s=min(0.01, 1 / iterations),
    )  # fmt: skip
    flags = {"clusterSize": str(case.ranks), "devices": str(case.devices), "maxRestarts": "3"}
    source = DataSource(spark).fromDataFrame(
        net.config(spark, **flags), source_frame(case, spark, folder), True
    )

    def on_event(event: dict[str, Any]) -> None:
        if event.get("event") == "restart":
            net.begin(event["generation"])

    def due() -> bool:
        return max(net.progress(0).values(), default=-1) >= case.kill_at * iterations

    def victims() -> list[int]:
        return [faults.victim(case.kill, pid) for pid in faults.trainers()]

    with kill_when(due if case.kill else lambda: False, victims):
        CaffeOnSpark(spark, on_event=on_event).train(source)
    return net.tally()


def run_tensorflow(case: Case, spark: Any, folder: Path) -> Tally:
    """Feeds a cluster; returns a tally of the rows that its nodes learned from."""
    from tensorflowonspark import TFCluster

    plan = counted_feed.FeedPlan(str(folder), case.batch, pace_s=0.3 * case.batch / case.rows)
    mode = TFCluster.InputMode.SPARK
    cluster = TFCluster.run(
        spark.sparkContext, counted_feed.learn, plan, case.ranks, 0, input_mode=mode, restart=True
    )  # fmt: skip

    def due() -> bool:
        return counted_feed.rows_given(folder) >= case.kill_at * case.rows * case.epochs

    def victims() -> list[int]:
        if case.kill == "feed worker":
            return feed_workers()
        return [node["executor_pid"] for node in cluster.cluster_info]

    try:
        with kill_when(due if case.kill else lambda: False, victims):
            for epoch in range(case.epochs):
                cluster.train(source_rdd(case, spark, folder, epoch), num_epochs=1)
            cluster.shutdown()
    except BaseException:
        with suppress(Exception):
            cluster.shutdown(timeout=30)
        raise
    return counted_feed.tally(folder, case.rows, case.epochs)


def run(case: Case, spark: Any, folder: Path) -> str:
    """Returns what went wrong; empty if nothing did."""
    folder.mkdir()
    try:
        found = (run_caffe if case.feed == "caffe" else run_tensorflow)(case, spark, folder)
    except Exception as error:
        if case.source == "repartition" and REFUSED in str(error):
            return ""
        return traceback.format_exc(limit=-3)
    return "" if found.exact else str(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*")
    parser.add_argument("--cases", type=int, default=200)
    flags = parser.parse_args()
    first = int(time.time())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the Workers end, too
    seeds = flags.seeds or range(first, first + flags.cases)
    os.environ.update([conftest.MARK.split("=")])
    os.environ["PYTHONPATH"] = str(HERE)
    failed = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-faults-")))
        hosts = [WorkerHost("127.0.0.1"), WorkerHost("127.0.0.2")]
        cluster = StandaloneCluster(folder, hosts, cores=2, conf=SPECULATION)
        stack.enter_context(cluster)
        from hearth.spark import session as spark_session

        spark = spark_session.start("hearth-faults", executors=2, master=cluster.url)
        stack.callback(spark.stop)
        for seed in seeds:
            start = time.monotonic()
            said = run(case_of(seed), spark, folder / f"case-{seed}")
            failed += [seed] if said else []
            again = len(list((folder / f"case-{seed}").glob("again-*")))
            print(
                f"{case_of(seed)}: {time.monotonic() - start:.1f} s, {again} further attempts,"
                f" {said or 'exact'}",
                flush=True,
            )
    print(f"{len(seeds)} cases, failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
