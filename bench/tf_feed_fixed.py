"""What a TensorFlow cluster costs beside its rows: starts, ends, partitions, memory; and files."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import report
from hearth.tensorflowonspark import TFCluster
from hearth.tensorflowonspark.TFSparkNode import TFNodeContext

SPARK = TFCluster.InputMode.SPARK
PARTITIONS = 100
LIMITS = {
    "run() after the last main function's start": 1.0,
    "shutdown() of an idle cluster": 1.0,
    "a partition beyond its rows": 0.020,
}
MEMORY_LIMIT_MB = 256
FILE_LIMIT_GB = 1.0  # per core
UPSTREAM_IMAGES_GB = 0.055 * 10
# name: (rows, floats of a row or bytes of an image)
FILES = {"784 floats": (20_000, 784), "10 floats": (1_000_000, 10), "150 KB images": (500, 0)}
IMAGE_BYTES = 150_528


def note_start(folder: str, ctx: Any) -> None:
    """A node that writes down when it started and waits for the feed's end."""
    Path(folder, str(ctx.task_index)).write_text(str(time.time()))
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        feed.next_batch(100)


def stall(folder: str, ctx: Any) -> None:
    """A node that takes one batch and no more until a file is there."""
    feed = ctx.get_data_feed()
    feed.next_batch(1)
    while not Path(folder, "go on").exists():
        time.sleep(0.1)
    feed.terminate()


def add_limit(
    table: report.Report, name: str, values: list[float], limit: float, unit: str
) -> None:
    """A row whose peer is a limit that ours must keep."""
    table.add(
        name, ours=values, peer=[limit], peer_name="the limit", unit=unit, higher_is_better=False
    )


def bench_times(spark: Any, table: report.Report, rounds: int) -> None:
    """Start, end, and the cost of a partition, one value a round."""
    found: dict[str, list[float]] = {name: [] for name in LIMITS}
    if not any(table.wants(name) for name in LIMITS):
        return
    context = spark.sparkContext
    rows = context.parallelize(range(PARTITIONS), PARTITIONS)
    for _ in range(rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            cluster = TFCluster.run(spark, note_start, folder, 1, 0, input_mode=SPARK)
            ready = time.time()
            started = float(Path(folder, "0").read_text()) if os.listdir(folder) else ready
            bare = report.seconds(lambda: rows.foreachPartition(lambda part: [*part]))
            fed = report.seconds(lambda c=cluster: c.train(rows, num_epochs=1))
            ended = report.seconds(cluster.shutdown)
        # No less than what clocks of two processes and two timings can tell from nothing.
        values = (max(1e-3, ready - started), ended, max(1e-3, fed - bare) / PARTITIONS)
        for name, value in zip(LIMITS, values, strict=True):
            found[name].append(value)
    for name, values in found.items():
        if table.wants(name):
            add_limit(table, name, values[1:], LIMITS[name], "s")


def feeder_mb() -> float:
    """Resident memory of this session's largest Python worker, ring included."""
    mark = os.environ["HEARTH_BENCH_MARK"]
    sizes = [0]
    for process in psutil.process_iter():
        try:
            worker = "pyspark.daemon" in process.cmdline()
            if worker and process.environ().get("HEARTH_BENCH_MARK") == mark:
                sizes.append(process.memory_info().rss)
        except psutil.Error:
            continue
    return max(sizes) / 1e6


def bench_memory(spark: Any, table: report.Report) -> None:
    """What lies in memory while a node takes no rows of a large partition."""
    name = "resident memory beside a stalled consumer"
    if not table.wants(name):
        return
    images = spark.sql(
        "select cast(repeat(cast(id % 10 as string), 150528) as binary) as x "
        "from range(0, 8000, 1, 1)"
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        TFCluster.run(spark, stall, folder, 1, 0, input_mode=SPARK) as cluster,
    ):
        feeding = threading.Thread(target=cluster.train, args=(images, 1))
        feeding.start()
        time.sleep(5.0)
        found = feeder_mb()
        Path(folder, "go on").touch()
        feeding.join()
    add_limit(table, name, [found], MEMORY_LIMIT_MB, "MB")


def make_table(rows: int, floats: int) -> pa.Table:
    """Columns `x` (floats, or an image's bytes) and `label`."""
    label = pa.array(np.arange(rows))
    if not floats:
        image = np.random.default_rng(0).bytes(IMAGE_BYTES)
        return pa.table({"x": pa.array([image] * rows, pa.binary()), "label": label})
    values = np.random.default_rng(0).random(rows * floats, np.float32)
    offsets = pa.array(np.arange(0, rows * floats + 1, floats, dtype=np.int32))
    return pa.table({"x": pa.ListArray.from_arrays(offsets, pa.array(values)), "label": label})


def write_parquet(table: pa.Table, folder: str) -> None:
    pq.write_table(table, f"{folder}/part.parquet", compression="snappy", row_group_size=1 << 16)


def write_arrow(table: pa.Table, folder: str) -> None:
    with pa.ipc.new_file(f"{folder}/part.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=4096)


def write_records(table: pa.Table, folder: str) -> None:
    from hearth.native._core import TfRecordWriter

    writer = TfRecordWriter(f"{folder}/part-r-00000")
    for batch in table.to_batches(1024):
        writer.write(batch)
    writer.finish()


def read_rate(folder: str, batch_size: int, nominal: int) -> float:
    """GB of values per second of CPU that one node takes from files as arrays."""
    feed = TFNodeContext(0, "worker", 0, {"worker": ["here:1"]}).get_file_feed(folder)
    before = time.process_time()
    while not feed.should_stop():
        batch = feed.next_numpy(batch_size)
        if batch is not None:
            batch["x"][0]
    return nominal / 1e9 / (time.process_time() - before)


def file_formats() -> Iterator[tuple[str, Callable[[pa.Table, str], None]]]:
    yield from (("parquet", write_parquet), ("arrow", write_arrow), ("tfrecord", write_records))


def bench_files(table: report.Report, rounds: int) -> None:
    """Files that the node reads by itself, warm in the page cache."""
    for shape, (rows, floats) in FILES.items():
        for kind, write in file_formats():
            name = f"files/{kind}/{shape}"
            if not table.wants(name):
                continue
            with tempfile.TemporaryDirectory() as folder:
                write(make_table(rows, floats), folder)
                nominal = rows * (4 * floats or IMAGE_BYTES)
                batch = {784: 100, 10: 256, 0: 32}[floats]
                rates = [read_rate(folder, batch, nominal) for _ in range(rounds + 1)][1:]
            limit = FILE_LIMIT_GB if floats else UPSTREAM_IMAGES_GB
            peer = "the limit, per core" if floats else "10 x upstream, per core"
            table.add(name, ours=rates, peer=[limit], peer_name=peer, unit="GB/s")
