"""Files that a node reads itself, in one process, from the page cache: GB of values per second
of processor time, against the format's own library in the same process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import report
from hearth.tensorflowonspark.TFSparkNode import TFNodeContext

IMAGE_BYTES = 150_528


@dataclass(frozen=True)
class Files:
    """Columns x, lists of `floats` or images of IMAGE_BYTES, and label."""

    rows: int
    batch_size: int
    floats: int

    @property
    def gigabytes(self) -> float:
        return self.rows * (4 * self.floats or IMAGE_BYTES) / 1e9

    def table(self) -> pa.Table:
        generator = np.random.default_rng(0)
        if not self.floats:
            images = [generator.bytes(IMAGE_BYTES)] * self.rows
            return pa.table({"x": pa.array(images, pa.binary()), "label": np.arange(self.rows)})
        values = pa.array(generator.random(self.rows * self.floats, np.float32))
        ends = np.arange(0, len(values) + 1, self.floats, dtype=np.int32)
        x = pa.ListArray.from_arrays(pa.array(ends), values)
        return pa.table({"x": x, "label": np.arange(self.rows)})


SHAPES = {
    "784 floats": Files(20_000, 100, 784),
    "10 floats": Files(1_000_000, 256, 10),
    "150 KB images": Files(500, 32, 0),
}


def write_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="snappy", row_group_size=1 << 16)


def read_parquet(path: Path, files: Files) -> Iterator[pa.RecordBatch]:
    yield from pq.ParquetFile(path).iter_batches(files.batch_size)


def write_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=4096)


def read_arrow(path: Path, files: Files) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:
        for i in range(file.num_record_batches):
            batch = file.get_batch(i)
            for begin in range(0, batch.num_rows, files.batch_size):
                yield batch.slice(begin, files.batch_size)


def write_records(table: pa.Table, path: Path) -> None:
    from hearth.native._core import TfRecordWriter

    writer = TfRecordWriter(str(path))
    for batch in table.to_batches(1024):
        writer.write(batch)
    writer.finish()


def read_records(path: Path, files: Files) -> Iterator[Any]:
    import tensorflow as tf

    kind = tf.io.FixedLenFeature([files.floats], tf.float32)
    features = {"x": kind if files.floats else tf.io.FixedLenFeature([], tf.string)}
    features["label"] = tf.io.FixedLenFeature([], tf.int64)
    records = tf.data.TFRecordDataset(str(path)).batch(files.batch_size)
    yield from records.map(lambda batch: tf.io.parse_example(batch, features))


FORMATS = {
    "parquet": (write_parquet, read_parquet, "part.parquet", "pyarrow alone"),
    "arrow": (write_arrow, read_arrow, "part.arrow", "pyarrow alone"),
    "tfrecord": (write_records, read_records, "part-r-00000", "tf.data"),
}


def rate(read: Callable[[], None], files: Files) -> float:
    """GB of values per second of this process's processor time."""
    before = time.process_time()
    read()
    return files.gigabytes / (time.process_time() - before)


def read_feed(folder: Path, files: Files) -> None:
    """Ours: the node's feed of files, as arrays."""
    feed = TFNodeContext(0, "worker", 0, {"worker": ["here:1"]}).get_file_feed(str(folder))
    while not feed.should_stop():
        batch = feed.next_numpy(files.batch_size)
        if batch is not None:
            batch["x"][0]


def read_alone(batches: Iterator[Any]) -> None:
    """The peer: the same minibatches, each read as an array."""
    for batch in batches:
        if isinstance(batch, pa.RecordBatch):
            x = batch.column(0)
            (x if pa.types.is_binary(x.type) else x.values.to_numpy())[0]
        else:
            batch["x"][0]


def bench(table: report.Report, rounds: int) -> None:
    """The rows files/FORMAT/SHAPE."""
    for shape, files in SHAPES.items():
        for kind, (write, read, name, peer_name) in FORMATS.items():
            if not table.wants(f"files/{kind}/{shape}"):
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, name)
                write(files.table(), path)
                ours, peer = report.alternate(
                    rounds,
                    lambda f=files, at=path: rate(lambda: read_feed(at.parent, f), f),
                    lambda f=files, at=path, r=read: rate(lambda: read_alone(r(at, f)), f),
                )
            table.add(
                f"files/{kind}/{shape}", ours=ours, peer=peer, peer_name=peer_name, unit="GB/s"
            )
