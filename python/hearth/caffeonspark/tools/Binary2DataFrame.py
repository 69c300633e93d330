"""Converts image files with labels to a DataFrame for ImageDataFrame."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from hearth.caffeonspark.interrupts import exit_with
from hearth.caffeonspark.tools.images import listed, read_batches
from hearth.caffeonspark.tools.parquet_parts import write_table
from hearth.caffeonspark.tools.program import check_new, main
from hearth.files.uri import whole_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Required flags.
NEEDED = ("imageRoot", "labelFile", "output")
SCHEMA = "SampleID string, label int, data binary"


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-imageRoot: folder or URI of the images; -labelFile: lines `NAME LABEL ID`, NAME relative to
    the root, LABEL a number; -output: the DataFrame, in -outputFormat (parquet).

    Its columns: SampleID string, label int, data binary. For a net, select
    `SampleID as id`, `label`, `data` (dataframe_column_select).
    """
    check_new(spark, flags.output_path)
    rows, count = listed(spark, flags.label_file, 3)
    task = partial(_rows, whole_uri(flags.image_root, spark))
    write_table(rows, task, SCHEMA, flags.output_path, flags.output_format)
    return f"{count} images written to {flags.output_path} as {flags.output_format}"


def _rows(root: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in read_batches(root, "name", batches):
        yield pa.RecordBatch.from_pydict(
            {
                "SampleID": batch.column("id"),
                "label": batch.column("label"),
                "data": batch.column("data"),
            }
        )


if __name__ == "__main__":
    exit_with(main("Binary2DataFrame", convert, NEEDED))
