"""Converts an LMDB of Datums to a DataFrame for ImageDataFrame, on any file system."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from hearth.caffeonspark.interrupts import exit_with
from hearth.caffeonspark.tools.databases import lmdb_source, record_count
from hearth.caffeonspark.tools.parquet_parts import write_table
from hearth.caffeonspark.tools.program import check_new, main
from hearth.sources.frames import read_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hearth.sources.source import Source

# Required flags.
NEEDED = ("imageRoot", "output")
SCHEMA = (
    "id string, label string, channels int, height int, width int, encoded boolean, data binary"
)


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-imageRoot: the LMDB, on a path that all hosts see; -lmdb_partitions: number of parts to read
    (default: one per 128 MiB); -output: the DataFrame, in -outputFormat (parquet).

    Its columns: id and label string; channels, height, width int; encoded boolean; data binary.
    """
    check_new(spark, flags.output_path)
    source, parts = lmdb_source(spark, flags)
    numbers = spark.range(0, parts, 1, parts)
    task = partial(_rows, source, parts)
    write_table(numbers, task, SCHEMA, flags.output_path, flags.output_format)
    count = record_count(source)
    return f"{count} records written to {flags.output_path} as {flags.output_format}"


def _rows(
    source: Source, parts: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for datums in read_parts(source, parts, batches):
        columns = dict(zip(datums.schema.names, datums.columns, strict=True))
        columns["label"] = columns["label"].cast("string")
        columns["encoded"] = columns["encoded"].cast("bool")
        yield pa.RecordBatch.from_pydict(columns)


if __name__ == "__main__":
    exit_with(main("LMDB2DataFrame", convert, NEEDED))
