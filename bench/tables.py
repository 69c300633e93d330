"""Tables against plain Parquet files: planning time for many files, rows per second of one rank.

.venv/bin/python bench/tables.py [--rows 200000] [--files 10000]

Prints JSON lines. With --spark FOLDER also Spark's DataFrame of the Delta table; the folder has the
jars of delta-spark for the running version of Spark, as `make test-tables` leaves them:

build/spark-4.0/bin/python bench/tables.py --rows 2000000 --spark build/tables-4.0

With --hdfs libhdfs or webhdfs the rows are read from an HDFS on this machine by that client; its
daemons are those of tests/hadoop.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction

import hdfs_read  # to import from tests/hadoop
from hearth import data

WIDTH = 784
ROWS_OF_FILE = 25_000
TURNS = 3


def write_delta(folder: Path, schema: pa.Schema, rows: dict[str, int]) -> None:
    """Writes Delta's log of existing files, with their numbers of rows."""
    table = DeltaTable.create(str(folder), Schema.from_arrow(schema))
    added = [
        AddAction(name, (folder / name).stat().st_size, {}, 1, True, f'{{"numRecords": {count}}}')
        for name, count in rows.items()
    ]
    table.create_write_transaction(added, "append", Schema.from_arrow(schema))


def plan_many(folder: Path, files: int) -> dict[str, float]:
    """Seconds to pin a table of that many small files, and to pin them as plain files."""
    part = pa.table({"id": pa.array(range(10), pa.int64())})
    plain, table = folder / "plain", folder / "table"
    plain.mkdir()
    table.mkdir()
    pq.write_table(part, plain / "0.parquet")
    for i in range(files):
        name = f"{i}.parquet"
        if i:
            shutil.copyfile(plain / "0.parquet", plain / name)
        os.link(plain / name, table / name)
    write_delta(table, part.schema, {f"{i}.parquet": 10 for i in range(files)})
    return {
        "files": files,
        "table_s": timed(lambda: data.delta(str(table)).pin()),
        "plain_s": timed(lambda: data.parquet(str(plain)).pin()),
    }


def timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def write_wide(folder: Path, rows: int) -> tuple[Path, Path]:
    """The same files as a table and as a plain folder."""
    plain, table = folder / "wide", folder / "wide_table"
    plain.mkdir()
    table.mkdir()
    names = {}
    for i in range(-(-rows // ROWS_OF_FILE)):
        count = min(ROWS_OF_FILE, rows - i * ROWS_OF_FILE)
        values = np.random.default_rng(i).random(count * WIDTH, np.float32)
        x = pa.FixedSizeListArray.from_arrays(pa.array(values), WIDTH).cast(pa.list_(pa.float32()))
        part = pa.table({"x": x, "label": pa.array(range(count), pa.int64())})
        name = f"{i}.parquet"
        pq.write_table(part, plain / name, row_group_size=5000, use_dictionary=False)
        os.link(plain / name, table / name)
        names[name] = count
    write_delta(table, part.schema, names)
    return plain, table


@contextmanager
def in_hdfs(client: str, *folders: Path) -> Iterator[list[str]]:
    """URIs of copies of the folders in an HDFS, which this process reads through `client`."""
    from hadoop_cluster import HadoopCluster

    with HadoopCluster() as hadoop:
        os.environ.update(hadoop.environment())
        os.environ.update(hdfs_read.clients(hadoop)[client])
        home = f"{hadoop.uri}/user/{hadoop.user}"
        for folder in folders:
            hadoop.run("hdfs", "dfs", "-put", str(folder), f"{home}/{folder.name}")
        yield [f"{home}/{folder.name}" for folder in folders]


def rows_of(source: Any) -> int:
    return sum(batch.num_rows for split in source.splits() for batch in source.read(split))


def rows_by_spark(spark: Any, uri: str) -> int:
    """Rows per second that a Spark task gets as Arrow batches, like a task that feeds a rank."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})

    frame = spark.read.format("delta").load(uri)
    return sum(row[0] for row in frame.mapInArrow(count, "rows long").collect())


def session(jars: Path) -> Any:
    """Spark with Delta on one core, as one rank has."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": ",".join(map(str, sorted(jars.glob("*.jar")))),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    builder = SparkSession.builder.master("local[1]").appName("tables")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--spark", type=Path, help="a folder of jars")
    parser.add_argument("--hdfs", choices=("libhdfs", "webhdfs"), help="read the rows from HDFS")
    options = parser.parse_args()
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="hearth-bench-")
        folder = Path(stack.enter_context(made))
        if options.files:
            print(json.dumps(plan_many(folder, options.files)), flush=True)
        folders = write_wide(folder, options.rows)
        plain, table = map(str, folders)
        if options.hdfs:
            plain, table = stack.enter_context(in_hdfs(options.hdfs, *folders))
        ways: dict[str, Callable[[], int]] = {
            "table": lambda: rows_of(data.delta(table).pin()),
            "plain": lambda: rows_of(data.parquet(plain).pin()),
        }
        if options.spark:
            spark = session(options.spark)
            ways["spark"] = lambda: rows_by_spark(spark, table)
        speeds: dict[str, list[float]] = {name: [] for name in ways}
        for name, way in ways.items():
            assert way() == options.rows, name
        for _ in range(TURNS):
            for name, way in ways.items():
                speeds[name].append(options.rows / timed(way))
        for name, found in speeds.items():
            median = round(statistics.median(found))
            print(json.dumps({"way": name, "rows": options.rows, "rows_per_s": median}), flush=True)


if __name__ == "__main__":
    main()
