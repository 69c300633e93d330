"""An LMDB of Datums as a SequenceFile, which SeqImageDataSource reads."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from hearth.caffeonspark.interrupts import exit_with
from hearth.caffeonspark.tools.databases import lmdb_rows
from hearth.caffeonspark.tools.program import main
from hearth.caffeonspark.tools.sequence_keys import check_classic, picture_key
from hearth.caffeonspark.tools.sequence_parts import write_sequence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hearth.rows.file_rows import DatabaseRows

# Flags that it cannot do without.
NEEDED = ("imageRoot", "output")


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-imageRoot: the LMDB, under a path that all hosts see; -lmdb_partitions: in how many parts it
    is read (by its size); -output: the SequenceFile (a folder of parts), key (id, label, channels,
    height, width, encoded), value the picture's bytes.
    """
    check_classic(spark, flags.output_path)
    rows = lmdb_rows(spark, flags)
    parts = spark.sparkContext.parallelize(range(rows.parts), rows.parts)
    write_sequence(spark, parts.flatMap(partial(_records, rows)), flags.output_path)
    return f"{rows.pinned.records} records written to {flags.output_path}"


def _records(rows: DatabaseRows, part: int) -> Iterator[tuple[bytes, bytes]]:
    for batch in rows.read(part, rows.parts):
        for row in batch.to_pylist():
            key = (row["id"], str(row["label"]), row["channels"], row["height"], row["width"])
            yield picture_key(*key, bool(row["encoded"])), row["data"]


if __name__ == "__main__":
    exit_with(main("LMDB2Sequence", convert, NEEDED))
