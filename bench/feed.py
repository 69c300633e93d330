#!/usr/bin/env python3
"""The feed against plain Spark and Arrow: ring, DataFrame to minibatches, replay, memory.

`bench/feed.py --json FILE`. Ours and the peer run in turn on the same data, in one Spark session of
two local tasks; figures are MB/s of column data unless a row says otherwise. A DataFrame row is the
whole Spark job, until the last minibatch. The consumer processes (feed_consumer.py) run before
the clock starts, as a trainer does; the ring, the spool and its file are new in each round.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from local_spark import start_spark
from report import Report, alternate, arguments, seconds

TASKS = 2
BATCH_SIZE = 64
GOAL_RESIDENT_MB = 256
MEMORY_ROW = "memory/stalled consumer"
RING_PASS_BYTES = 1.5e9

RING_CONSUMER = """
import sys
from hearth.native._core import RingReader
ring = RingReader.attach(int(sys.argv[1]), int(sys.argv[2]))
while (drained := ring.drain())[0]:
    print(*drained, flush=True)
"""
SOCKET_CONSUMER = """
import socket, sys
import numpy as np, pyarrow as pa
file = socket.socket(fileno=int(sys.argv[1])).makefile("rb")
while file.peek(1):
    rows = 0
    for batch in pa.ipc.open_stream(file):
        rows += batch.num_rows
        np.frombuffer(batch.column(0).values.buffers()[1], np.uint8)[::64].sum()
    print(rows, flush=True)
"""


def start_consumer(code: str, fds: tuple[int, ...], *arguments: int) -> subprocess.Popen[str]:
    """Runs Python code in a process that inherits `fds`; their numbers are its first arguments."""
    command = [sys.executable, "-c", code, *map(str, (*fds, *arguments))]
    return subprocess.Popen(command, pass_fds=fds, stdout=subprocess.PIPE, text=True)


# ---- process to process


def bench_ring(report: Report, rounds: int) -> None:
    """GB/s with both sides touching each cache line of the data."""
    for label, rows in (("0.2 MB batches", 64), ("3.2 MB batches", 1024)):
        name = f"ring/{label}"
        if not report.wants(name):
            continue
        batch = list_batch(rows, 784)
        repeats = int(RING_PASS_BYTES // batch.nbytes)
        gigabytes = repeats * batch.nbytes / 1e9
        with ring_pass(batch, repeats) as by_ring, socket_pass(batch, repeats) as by_socket:
            ours, peer = alternate(
                rounds,
                lambda gb=gigabytes, send=by_ring: gb / seconds(send),
                lambda gb=gigabytes, send=by_socket: gb / seconds(send),
            )
        report.add(
            name, ours=ours, peer=peer, peer_name="Arrow IPC over a unix socket", unit="GB/s"
        )


@contextmanager
def ring_pass(batch: pa.RecordBatch, repeats: int) -> Iterator[Callable[[], str]]:
    """Returns a function that sends the batch `repeats` times to a waiting process."""
    from hearth.native._core import RingWriter

    writer = RingWriter()
    with start_consumer(RING_CONSUMER, writer.fds()) as consumer:
        writer.close_child_fds()

        def run() -> str:
            for _ in range(repeats):
                writer.write(batch)
            writer.flush()
            return consumer.stdout.readline()

        yield run
        writer.end()


@contextmanager
def socket_pass(batch: pa.RecordBatch, repeats: int) -> Iterator[Callable[[], str]]:
    """The same through Arrow's stream format."""
    ours, theirs = socket.socketpair()
    with start_consumer(SOCKET_CONSUMER, (theirs.fileno(),)) as consumer:
        theirs.close()

        def run() -> str:
            with pa.ipc.new_stream(file, batch.schema) as stream:
                for _ in range(repeats):
                    stream.write_batch(batch)
            file.flush()
            return consumer.stdout.readline()

        with ours, ours.makefile("wb") as file:
            yield run


# ---- data


@dataclass(frozen=True)
class Data:
    """Parquet files with one column "data", a file per task."""

    name: str
    path: str
    rows: int
    megabytes: float


def list_batch(rows: int, length: int, seed: int = 0) -> pa.RecordBatch:
    """Random float32 lists: column "data", [rows] x list[length]."""
    values = np.random.default_rng(seed).random(rows * length, dtype=np.float32)
    offsets = np.arange(0, rows * length + 1, length, dtype=np.int32)
    return pa.record_batch({"data": pa.ListArray.from_arrays(offsets, pa.array(values))})


def image_batch(rows: int, length: int, seed: int = 0) -> pa.RecordBatch:
    """Random binaries: column "data", [rows] of `length` bytes."""
    blob = np.random.default_rng(seed).bytes(rows * length)
    pieces = [blob[i * length : (i + 1) * length] for i in range(rows)]
    return pa.record_batch({"data": pa.array(pieces, pa.binary())})


def write_data(folder: Path, name: str) -> Data:
    make, rows, length, width = {
        "784 floats": (list_batch, 120_000, 784, 4),
        "150 KB images": (image_batch, 3_000, 150_000, 1),
        "10 floats": (list_batch, 6_000_000, 10, 4),
    }[name]
    path = folder / name.replace(" ", "_")
    path.mkdir()
    for task in range(TASKS):
        table = pa.Table.from_batches([make(rows // TASKS, length, task)])
        pq.write_table(
            table,
            path / f"{task}.parquet",
            row_group_size=rows // TASKS // 4,
            compression="none",
            use_dictionary=False,
        )
    return Data(name, str(path), rows, rows * length * width / 1e6)


# ---- DataFrame to trainer


def start() -> Any:
    # The Python workers import feed_consumer.
    paths = [str(Path(__file__).parent.resolve()), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    whole = {"spark.sql.files.maxPartitionBytes": "4g", "spark.sql.files.openCostInBytes": "0"}
    return start_spark("bench-feed", "2g", TASKS, whole)


def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The peer: only touches each cache line of the values."""
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        column = batch.column(0)
        values = (
            column.buffers()[2] if pa.types.is_binary(column.type) else column.values.buffers()[1]
        )
        np.frombuffer(values, np.uint8)[::64].sum()
    yield pa.record_batch({"rows": [rows]})


def feeder(epochs: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Ours: a ring to a consumer process that turns rows into minibatches for `epochs` epochs."""

    def feed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from hearth.native._core import RingWriter

        from feed_consumer import consumer

        writer = RingWriter()
        consumer().take(writer.fds(), epochs, BATCH_SIZE)
        writer.close_child_fds()
        for batch in batches:
            writer.write(batch)
        writer.end()
        answer = consumer().answer()
        seconds_of = {f"epoch{epoch}": [elapsed] for epoch, (_, elapsed, _) in enumerate(answer)}
        yield pa.record_batch({"rows": [answer[0][0]], **seconds_of})

    return feed


def run_job(spark: Any, data: Data, function: Callable[..., Any], epochs: int = 0) -> list[Any]:
    """Runs the function over the data's partitions; it yields one row per task.

    Checks that all rows arrive.
    """
    schema = ", ".join(["rows bigint", *(f"epoch{i} double" for i in range(epochs))])
    answers = spark.read.parquet(data.path).mapInArrow(function, schema).collect()
    assert len(answers) == TASKS and sum(a.rows for a in answers) == data.rows, answers
    return answers


def bench_dataframe(report: Report, rounds: int, spark: Any, data: Data) -> None:
    name = f"dataframe/{data.name}"
    if not report.wants(name):
        return
    ours, peer = alternate(
        rounds,
        lambda: data.megabytes / seconds(lambda: run_job(spark, data, feeder(1), 1)),
        lambda: data.megabytes / seconds(lambda: run_job(spark, data, look)),
    )
    report.add(name, ours=ours, peer=peer, peer_name="mapInArrow that only looks", unit="MB/s")


def bench_replay(report: Report, rounds: int, spark: Any, data: Data) -> None:
    """The second epoch against the first, as measured by the slowest trainer."""
    name = f"replay/{data.name}"
    if not report.wants(name):
        return
    first, second = [], []
    for _ in range(rounds):
        answers = run_job(spark, data, feeder(2), 2)
        first.append(data.megabytes / max(a.epoch0 for a in answers))
        second.append(data.megabytes / max(a.epoch1 for a in answers))
    report.add(name, ours=second, peer=first, peer_name="the first epoch", unit="MB/s")


def stalled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Feeds a ring whose reader reads nothing; yields this process's resident memory in MB."""
    from hearth.native._core import RingWriter

    writer = RingWriter()
    resident = []
    try:
        for batch in batches:
            writer.write(batch, 1.0)
    except TimeoutError:
        status = Path("/proc/self/status").read_text()
        resident = [int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024]
    yield pa.record_batch({"megabytes": pa.array(resident, pa.float64())})


def bench_memory(report: Report, rounds: int, spark: Any, data: Data) -> None:
    if not report.wants(MEMORY_ROW):
        return
    frame = spark.read.parquet(data.path).mapInArrow(stalled, "megabytes double")
    worst = []
    for _ in range(rounds):
        answers = frame.collect()
        assert len(answers) == TASKS, "the ring took all rows: the data is too small"
        worst.append(max(answer.megabytes for answer in answers))
    report.add(
        MEMORY_ROW,
        ours=worst,
        peer=[GOAL_RESIDENT_MB],
        peer_name="the goal",
        unit="MB",
        higher_is_better=False,
    )


def bench_spark(report: Report, rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="hearth-bench-") as folder:
        spark = start()
        for name in ("784 floats", "150 KB images", "10 floats"):
            rows = [f"dataframe/{name}", f"replay/{name}", MEMORY_ROW]
            if not any(map(report.wants, rows)):
                continue
            data = write_data(Path(folder), name)
            bench_dataframe(report, rounds, spark, data)
            bench_replay(report, rounds, spark, data)
            if name == "150 KB images":
                bench_memory(report, rounds, spark, data)
        spark.stop()


def main() -> None:
    flags = arguments(__doc__.splitlines()[0]).parse_args()
    report = Report(flags.only)
    bench_ring(report, flags.rounds)
    bench_spark(report, flags.rounds)
    report.save(flags.json)


if __name__ == "__main__":
    main()
