#!/usr/bin/env python3
"""CaffeOnSpark's sources, tools and features() against plain reads: figures per core.

`bench/caffe_sources.py --json FILE`. The feed of a Spark task writes a source's rows to a ring, and
a process at the other end reads minibatches, like a trainer before it transforms them. Both
together are compared with a process that reads the same files in chunks and touches each cache
line. A tool runs as a Spark job on one core; the start of Spark is not measured.
"""

from __future__ import annotations

import importlib
import io
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from feed_consumer import Consumer
from local_spark import start_spark
from report import Report, alternate, arguments, seconds

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from lmdb_files import datum, write_lmdb

IMAGE_BYTES = 150_000
IMAGES = 3_000
DIGITS = 200_000
GOAL_DIGITS = 300_000
GOAL_TOOLS = 200
FEATURE_IMAGES = 128
CHUNK = 8 << 20
TOOLS = ("Binary2Sequence", "Binary2DataFrame", "LMDB2Sequence", "LMDB2DataFrame")
FEATURES = "features/150 KB JPEGs"

NET = """layer {{ name: "data" type: "MemoryData" top: "data" top: "label" source_class: "LMDB"
  memory_data_param {{ source: "{source}" batch_size: 16 channels: 3 height: 227 width: 227 }}
  transform_param {{ crop_size: 227 }} }}
"""


# ---- sources into a ring


def drained(consumer: Consumer, batches: Iterator[Any]) -> tuple[float, float]:
    """Feeds the batches to a process that reads minibatches of 64.

    Returns the wall time and the processor time of both processes, in seconds.
    """
    from hearth.native._core import RingWriter

    begin, used = time.perf_counter(), time.process_time()
    writer = RingWriter()
    consumer.take(writer.fds(), 1, 64)
    writer.close_child_fds()
    for batch in batches:
        writer.write(batch)
    writer.end()
    ((_, _, others),) = consumer.answer()
    return time.perf_counter() - begin, time.process_time() - used + others


def plain_read(path: str, copy: bool = False) -> tuple[float, float]:
    """Reads the file in chunks and touches each cache line; returns the same times.

    `copy`: also copies the chunks to another file, as a trainer spools its rows for later epochs.
    """
    begin, used = time.perf_counter(), time.process_time()
    chunk = np.empty(CHUNK, np.uint8)
    with open(path, "rb", buffering=0) as file, tempfile.TemporaryFile(buffering=0) as kept:
        while count := file.readinto(memoryview(chunk)):
            chunk[:count:64].sum()
            if copy:
                kept.write(memoryview(chunk)[:count])
        seconds = time.perf_counter() - begin, time.process_time() - used
    return seconds


def bench_files(report: Report, folder: Path, rounds: int) -> None:
    """Files that ranks read directly: rows into the trainer's queue, without transformations."""
    from hearth import data
    from hearth.sources.rank_rows import RankRows

    consumer = Consumer()
    if report.wants("lmdb/150 KB images"):
        path = lmdb_of_images(folder)
        rows = RankRows(data.lmdb(path).pin().in_place())
        read_from_disk(f"{path}/data.mdb")
        bench_images(report, "lmdb/150 KB images", f"{path}/data.mdb", rounds,
                       lambda: drained(consumer, rows.read(0, 1)))  # fmt: skip
    if report.wants("SequenceFile/150 KB images"):
        path = read_from_disk(sequence_of_images(folder))
        images = RankRows(data.sequence_file(path).pin().in_place())
        bench_images(report, "SequenceFile/150 KB images", path, rounds,
                       lambda: drained(consumer, images.read(0, 1)))  # fmt: skip
    name = "lmdb/28x28 Datums"
    if report.wants(name):
        pixels = np.random.default_rng(1).bytes(784)
        records = {f"{i:08d}": datum(pixels, i % 10, (1, 28, 28)) for i in range(DIGITS)}
        rows = RankRows(data.lmdb(write_lmdb(folder / "digits", records)).pin().in_place())
        found = [drained(consumer, rows.read(0, 1)) for _ in range(rounds)]
        for kind, column in (("", 0), (", per core", 1)):
            rates = [DIGITS / times[column] for times in found]
            report.add(name + kind, ours=rates, peer=[GOAL_DIGITS], peer_name="the goal",
                       unit="rows/s")  # fmt: skip


def bench_images(
    report: Report, name: str, path: str, rounds: int, ours: Callable[[], tuple[float, float]]
) -> None:
    """Reports the wall time of feeder and trainer together, and the processor time of both."""
    sides = (ours, lambda: plain_read(path), lambda: plain_read(path, True))
    found, *peers = alternate(rounds, *sides)
    megabytes = IMAGES * IMAGE_BYTES / 1e6
    for kind, column in (("", 0), (", per core", 1)):
        rates = [megabytes / times[column] for times in found]
        for number, peer_name in enumerate(
            ("a plain read of the file", "a plain copy of the file")
        ):
            peer = [megabytes / times[column] for times in peers[number]]
            report.add(name + kind, ours=rates, peer=peer, peer_name=peer_name, unit="MB/s")


def read_from_disk(path: str) -> str:
    """Reads the file into the page cache in large chunks; small writes leave it in small pages."""
    with open(path, "rb", buffering=0) as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(CHUNK):
            pass
    return path


def sequence_of_images(folder: Path) -> str:
    from hearth.caffeonspark.tools.sequence_keys import pair_key
    from hearth.caffeonspark.tools.sequence_parts import write_records

    path = folder / "images_seq"
    data = np.random.default_rng(2).bytes(IMAGE_BYTES + IMAGES)
    with open(path, "wb") as file:
        write_records(
            file,
            ((pair_key(f"{i:08d}", str(i % 10)), data[i : i + IMAGE_BYTES]) for i in range(IMAGES)),
        )
    return str(path)


def lmdb_of_images(folder: Path) -> str:
    path = folder / "images_lmdb"
    if not path.exists():
        data = np.random.default_rng(2).bytes(IMAGE_BYTES + IMAGES)
        records = {
            f"{i:08d}": datum(data[i : i + IMAGE_BYTES], i % 10, (3, 256, 256), encoded=True)
            for i in range(IMAGES)
        }
        write_lmdb(path, records)
    return str(path)


# ---- tools as Spark jobs


class Tools:
    """CaffeOnSpark's converters on the same images; each call writes a new output."""

    def __init__(self, spark: Any, folder: Path):
        self._spark, self._folder = spark, folder
        self._outputs = (f"file:{folder}/out{i}" for i in itertools.count())
        self.output = ""
        self.megabytes = IMAGES * IMAGE_BYTES / 1e6
        root = folder / "images"
        root.mkdir()
        data = np.random.default_rng(3).bytes(IMAGE_BYTES + IMAGES)
        lines = []
        for i in range(IMAGES):
            (root / f"{i}.jpg").write_bytes(data[i : i + IMAGE_BYTES])
            lines.append(f"{i}.jpg {i % 10}")
        (root / "two.txt").write_text("\n".join(lines))
        (root / "three.txt").write_text("\n".join(f"{line} id" for line in lines))

    def run(self, name: str) -> float:
        """MB of images per second."""
        from hearth.caffeonspark.flags import parse_flags
        from hearth.caffeonspark.tools import program

        root = self._folder / "images"
        given = [f"-imageRoot={lmdb_of_images(self._folder)}"]
        if name.startswith("Binary"):
            labels = "two" if name.endswith("Sequence") else "three"
            given = [f"-imageRoot=file:{root}", f"-labelFile=file:{root}/{labels}.txt"]
        self.output = next(self._outputs)
        flags = parse_flags([*given, f"-output={self.output}"], program.DEFAULTS)
        tool = importlib.import_module(f"hearth.caffeonspark.tools.{name}")
        return self.megabytes / seconds(lambda: tool.convert(self._spark, flags))


def bench_tools(report: Report, folder: Path, rounds: int, spark: Any) -> None:
    """Each tool's MB of images per second of one core."""
    tools, unit = Tools(spark, folder), "MB/s"
    for name in TOOLS:
        row = f"tools/{name}"
        if report.wants(row):
            tools.run(name)
            ours = [tools.run(name) for _ in range(rounds)]
            report.add(row, ours=ours, peer=[GOAL_TOOLS], peer_name="the goal", unit=unit)


def bench_features(report: Report, folder: Path, rounds: int, spark: Any) -> None:
    """features() on JPEGs of about 150 KB through CaffeNet's first layers, against the program."""
    from hearth import native
    from hearth.caffeonspark import CaffeOnSpark, Config, DataSource

    name = FEATURES
    if not report.wants(name):
        return
    noise = np.random.default_rng(4)
    records = {}
    for i in range(FEATURE_IMAGES):
        small = noise.integers(0, 255, (57, 57, 3), np.uint8)
        image = Image.fromarray(np.kron(small, np.ones((4, 4, 1), np.uint8))[:227, :227])
        file = io.BytesIO()
        image.save(file, "JPEG", quality=100, subsampling=0)
        records[f"{i:08d}"] = datum(file.getvalue(), i % 10, (3, 227, 227), encoded=True)
    lmdb = write_lmdb(folder / "jpegs", records)
    nets = Path(__file__).resolve().parents[1] / "examples" / "nets" / "caffenet.prototxt"
    layers = re.findall(r"(?ms)^layer \{\n.*?^\}\n", nets.read_text())
    body = "".join(filter(_is_front, layers))
    (folder / "net.prototxt").write_text(NET.format(source=f"file:{lmdb}") + body)
    (folder / "plain.prototxt").write_text(
        'layer { name: "data" type: "Data" top: "data" top: "label" '
        "transform_param { crop_size: 227 } "
        f'data_param {{ source: "{lmdb}" backend: LMDB batch_size: 16 }} }}\n{body}'
    )
    (folder / "solver.prototxt").write_text('net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed"')
    (folder / "bare.caffemodel").write_bytes(b"\x0a\x03net")
    flags = {
        "conf": str(folder / "solver.prototxt"),
        "clusterSize": "1",
        "model": f"file:{folder}/bare.caffemodel",
        "features": "pool5",
    }
    conf = Config(spark, flags)
    turn = itertools.count()

    def ours() -> float:
        rows = CaffeOnSpark(spark).features(DataSource(spark).getSource(conf, False))
        return FEATURE_IMAGES / seconds(lambda: rows.write.format("noop").mode("append").save())

    def peer() -> float:
        given = ["bare.caffemodel", "plain.prototxt", "pool5", f"found{next(turn)}"]
        command = [str(native.program()), "extract_features", *given]
        command += [str(FEATURE_IMAGES // 16), "lmdb", "CPU"]
        env = {**native.environment(), "OMP_NUM_THREADS": "1"}
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)
        return FEATURE_IMAGES / (time.perf_counter() - start)

    found = alternate(rounds, ours, peer)
    report.add(
        name, ours=found[0], peer=found[1], peer_name="hearth extract_features", unit="images/s"
    )


def _is_front(layer: str) -> bool:
    kind = re.search(r'type: "(\w+)"', layer)[1]
    return kind in ("Convolution", "ReLU", "Pooling", "LRN") and "fc" not in layer


def main() -> None:
    options = arguments(__doc__.splitlines()[0]).parse_args()
    report = Report(options.only)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench_files(report, folder, options.rounds)
        if any(map(report.wants, (*(f"tools/{name}" for name in TOOLS), FEATURES))):
            spark = start_spark("bench-caffe-sources", "3g")
            bench_tools(report, folder, options.rounds, spark)
            bench_features(report, folder, options.rounds, spark)
            spark.stop()
    report.save(options.json)


if __name__ == "__main__":
    main()
