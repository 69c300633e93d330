"""Overhead of a TensorFlow cluster apart from its rows, against limits: times and memory."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

import marked_processes
import report
from hearth.tensorflowonspark import TFCluster

SPARK = TFCluster.InputMode.SPARK
PARTITIONS = 100
TIME_LIMITS = {
    "run() after the last main function's start": 1.0,
    "shutdown() of an idle cluster": 1.0,
    "a partition beyond its rows": 0.020,
}
MEMORY_ROW = "resident memory beside a stalled consumer"
MEMORY_LIMIT_MB = 256
IMAGES = (
    "select cast(repeat(cast(id % 10 as string), 150528) as binary) as x from range(0, 8000, 1, 1)"
)
_SETTLED_S = 0.5
_STALL_TIMEOUT_S = 60.0


def note_start(folder: str, ctx: Any) -> None:
    """A node that records when it started and waits for the end of the feed."""
    Path(folder, str(ctx.task_index)).write_text(str(time.time()))
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        feed.next_batch(100)


def stall(folder: str, ctx: Any) -> None:
    """A node that reads one batch, then none until a file exists."""
    feed = ctx.get_data_feed()
    feed.next_batch(1)
    while not Path(folder, "go on").exists():
        time.sleep(0.1)
    feed.terminate()


def add_limit(table: report.Report, name: str, values: list[float], limit: tuple) -> None:
    """A row whose peer is a limit (number, unit) that ours must not exceed."""
    number, unit = limit
    table.add(
        name, ours=values, peer=[number], peer_name="the limit", unit=unit, higher_is_better=False
    )


def bench_times(session: Callable[[], Any], table: report.Report, rounds: int) -> None:
    """Start, end, and the cost of a partition: one value per round."""
    if not any(map(table.wants, TIME_LIMITS)):
        return
    spark = session()
    rows = spark.sparkContext.parallelize(range(PARTITIONS), PARTITIONS)
    found = [_times_once(spark, rows) for _ in range(rounds + 1)][1:]
    for name, values in zip(TIME_LIMITS, zip(*found, strict=True), strict=True):
        if table.wants(name):
            add_limit(table, name, values, (TIME_LIMITS[name], "s"))


def _times_once(spark: Any, rows: Any) -> tuple[float, float, float]:
    """In the order of TIME_LIMITS."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = TFCluster.run(spark, note_start, folder, 1, 0, input_mode=SPARK)
        ready = time.time()
        note = Path(folder, "0")
        started = float(note.read_text()) if note.exists() else ready
        bare = report.seconds(lambda: rows.foreachPartition(lambda part: [*part]))
        fed = report.seconds(lambda: cluster.train(rows, num_epochs=1))
        ended = report.seconds(cluster.shutdown)
    # Replaces differences below the clocks' resolution.
    return max(1e-3, ready - started), ended, max(1e-3, fed - bare) / PARTITIONS


def bench_memory(session: Callable[[], Any], table: report.Report) -> None:
    """Memory in use while a node reads none of a large partition's rows."""
    if not table.wants(MEMORY_ROW):
        return
    spark = session()
    images = spark.sql(IMAGES)
    with (
        tempfile.TemporaryDirectory() as folder,
        TFCluster.run(spark, stall, folder, 1, 0, input_mode=SPARK) as cluster,
    ):
        feeding = threading.Thread(target=cluster.train, args=(images, 1))
        feeding.start()
        found = stalled_mb(marked_processes.own_mark())
        Path(folder, "go on").touch()
        feeding.join()
    add_limit(table, MEMORY_ROW, [found], (MEMORY_LIMIT_MB, "MB"))


def stalled_mb(mark: str) -> float:
    """Resident memory, with the ring, of the largest Python worker after its last row."""
    deadline = time.monotonic() + _STALL_TIMEOUT_S
    before: tuple[float, float] = (0.0, 0.0)
    while time.monotonic() < deadline:
        now = largest_worker(mark)
        # 100 MB: the rows have begun to fill the ring.
        if now == before and now[0] > 100:
            return now[0]
        before = now
        time.sleep(_SETTLED_S)
    raise SystemExit(f"the feeder did not come to rest in {_STALL_TIMEOUT_S:g} s")


def largest_worker(mark: str) -> tuple[float, float]:
    """(resident MB, seconds of processor time) of this session's largest Python worker."""
    sizes = [(0.0, 0.0)]
    for process in marked_processes.find(mark):
        try:
            if "pyspark.daemon" in process.cmdline():
                sizes.append((process.memory_info().rss / 1e6, sum(process.cpu_times()[:2])))
        except psutil.Error:
            continue
    return max(sizes)
