"""An LMDB of Datums as a DataFrame, which may lie anywhere and which ImageDataFrame reads."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hearth.caffeonspark.interrupts import exit_with
from hearth.caffeonspark.tools.databases import lmdb_rows
from hearth.caffeonspark.tools.program import check_new, main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Flags that it cannot do without.
NEEDED = ("imageRoot", "output")


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-imageRoot: the LMDB, under a path that all hosts see; -lmdb_partitions: in how many parts it
    is read (by its size); -output: the DataFrame, in -outputFormat (parquet).

    Its columns: id and label string; channels, height, width int; encoded boolean; data binary.
    """
    check_new(spark, flags.output_path)
    rows = lmdb_rows(spark, flags)
    frame = rows.frame(spark).selectExpr(
        "id", "cast(label as string) as label", "channels", "height", "width",
        "cast(encoded as boolean) as encoded", "data",
    )  # fmt: skip
    frame.write.format(flags.output_format).save(flags.output_path)
    return f"{rows.pinned.records} records written to {flags.output_path} as {flags.output_format}"


if __name__ == "__main__":
    exit_with(main("LMDB2DataFrame", convert, NEEDED))
