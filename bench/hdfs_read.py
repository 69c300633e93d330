"""Reads HDFS files like ranks and TensorFlow do, against a plain sequential read of the same file
by the same client, for both HDFS clients, in MB/s.

The daemons are those of tests/hadoop, on this machine; libhdfs is built if cargo is installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

import report

if TYPE_CHECKING:
    from hearth.sources.source import Source

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path += [str(TESTS), str(TESTS / "hadoop")]

ROWS, FLOATS = 80_000, 784  # 250 MB
IMAGES, IMAGE_BYTES = 2_000, 100_000
BLOCK = 8 << 20
SIDE_LIMIT_S = 280


def main() -> None:
    parser = report.arguments(__doc__.partition("\n")[0])
    parser.add_argument("--side", help="(a child's) the folder of the files, as a URI")
    flags = parser.parse_args()
    if flags.side:
        print(json.dumps(measure(flags.side, flags.rounds)))
        return

    from hadoop_cluster import HadoopCluster

    table = report.Report(flags.only)
    with HadoopCluster() as hadoop, tempfile.TemporaryDirectory() as local:
        os.environ.update(hadoop.environment())
        folder = f"{hadoop.uri}/user/{hadoop.user}/bench"
        write(Path(local))
        hadoop.run("hdfs", "dfs", "-put", local, folder)
        for client, settings in clients(hadoop).items():
            for name, values in side(folder, flags.rounds, settings).items():
                row = f"hdfs/{client}/{name}"
                if table.wants(row):
                    table.add(row, **values, peer_name="plain read", unit="MB/s")
    table.save(flags.json)


def clients(hadoop) -> dict[str, dict[str, str]]:
    """Environment variables of a process, by HDFS client."""
    from hadoop_jars import jars
    from hadoop_libhdfs import libhdfs

    found = {"webhdfs": {"HEARTH_HDFS": "webhdfs"}}
    if library := libhdfs(Path(hadoop.environment()["JAVA_HOME"])):
        found["libhdfs"] = {
            "HEARTH_HDFS": "libhdfs",
            "HEARTH_LIBHDFS": str(library),
            "CLASSPATH": f"{os.environ['HADOOP_CONF_DIR']}:{jars()}/*",
            "LIBHDFS_OPTS": "-Xmx256m",
        }
    return found


def side(folder: str, rounds: int, settings: dict[str, str]) -> dict[str, dict[str, list[float]]]:
    """The rows that a process measures with these settings."""
    done = subprocess.run(
        [sys.executable, __file__, "--side", folder, "--rounds", str(rounds)],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        text=True,
        timeout=SIDE_LIMIT_S,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def write(folder: Path) -> None:
    """The same rows as Parquet, ORC and TFRecords; images as SequenceFile and LMDB."""
    from hearth.native._core import TfRecordWriter
    from lmdb_files import datum, write_lmdb

    from hearth.caffeonspark.tools.sequence_keys import pair_key
    from hearth.caffeonspark.tools.sequence_parts import write_records

    values = pa.array(np.random.default_rng(0).random(ROWS * FLOATS, np.float32))
    ends = np.arange(0, len(values) + 1, FLOATS, dtype=np.int32)
    table = pa.table({"x": pa.ListArray.from_arrays(pa.array(ends), values)})
    pq.write_table(
        table, folder / "rows.parquet", compression="none", use_dictionary=False,
        row_group_size=8192,
    )  # fmt: skip
    writer = TfRecordWriter(str(folder / "rows.tfrecord"))
    for batch in table.to_batches(1024):
        writer.write(batch)
    writer.finish()
    orc.write_table(table, folder / "rows.orc", compression="uncompressed")

    images = {f"{i:08d}": os.urandom(IMAGE_BYTES) for i in range(IMAGES)}
    with open(folder / "images.seq", "wb") as file:
        write_records(file, ((pair_key(key, "1"), data) for key, data in images.items()))
    records = {key: datum(data, 1, (1, 1, 1), True) for key, data in images.items()}
    write_lmdb(folder / "lmdb", records)


def measure(root: str, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Measures each way of reading and the plain read in turn."""
    rows = {}
    for name, (file, read) in WAYS.items():
        uri = f"{root}/{file}"
        ours, peer = report.alternate(
            rounds, lambda u=uri, r=read: rate(u, r), lambda u=uri: rate(u, read_plainly)
        )
        rows[name] = {"ours": ours, "peer": peer}
    return rows


def rate(uri: str, read: Callable[[str], None]) -> float:
    from hearth.native._core import stat_file

    size = stat_file(uri).size
    return size / 1e6 / report.seconds(lambda: read(uri))


def read_plainly(uri: str) -> None:
    from hearth.native._core import InputFile

    file, at = InputFile(uri), 0
    while data := file.read_at(at, BLOCK):
        at += len(data)


def read_as_a_rank(uri: str, kind: str = "parquet", column: str = "x", count: int = ROWS) -> None:
    """Decodes the source's rows, like a rank before it writes them to the ring."""
    from hearth.sources.rank_rows import RankRows

    rows = RankRows(pinned(uri, kind, column)).read(0, 1)
    assert sum(batch.num_rows for batch in rows) == count


@cache
def pinned(uri: str, kind: str, column: str) -> Source:
    """The source, pinned once by the driver before the ranks read."""
    from hearth import data

    return getattr(data, kind)(uri, [column]).pin()


def read_records(uri: str) -> None:
    """TFRecords as a node's feed reads them."""
    from hearth.files.tfrecord_files import open_records

    reader, rows = open_records(uri), 0
    while (found := reader.read([("x", "float")], 1024)) is not None:
        rows += found[0]
    assert rows == ROWS


def read_dataset(uri: str) -> None:
    """TensorFlow's own reader with its default buffer."""
    import tensorflow as tf

    from hearth.tensorflow import register_filesystems

    register_filesystems()
    assert sum(1 for _ in tf.data.TFRecordDataset(uri).batch(1024)) == -(-ROWS // 1024)


WAYS = {
    "parquet": ("rows.parquet", read_as_a_rank),
    "orc": ("rows.orc", partial(read_as_a_rank, kind="orc")),
    "sequence": (
        "images.seq",
        partial(read_as_a_rank, kind="sequence_file", column="data", count=IMAGES),
    ),
    "lmdb": ("lmdb/data.mdb", partial(read_as_a_rank, kind="lmdb", column="data", count=IMAGES)),
    "tfrecord": ("rows.tfrecord", read_records),
    "TFRecordDataset": ("rows.tfrecord", read_dataset),
}


if __name__ == "__main__":
    main()
