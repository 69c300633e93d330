"""An LMDB of Datums as a SequenceFile, which SeqImageDataSource reads."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from hearth.caffeonspark.interrupts import exit_with
from hearth.caffeonspark.tools.databases import lmdb_source, record_count
from hearth.caffeonspark.tools.program import main
from hearth.caffeonspark.tools.sequence_keys import check_classic, picture_key
from hearth.caffeonspark.tools.sequence_parts import write_sequence
from hearth.sources.rank_rows import RankRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Flags that it cannot do without.
NEEDED = ("imageRoot", "output")


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-imageRoot: the LMDB, under a path that all hosts see; -lmdb_partitions: in how many parts it
    is read (by its size); -output: the SequenceFile (a folder of parts), key (id, label, channels,
    height, width, encoded), value the picture's bytes.
    """
    check_classic(spark, flags.output_path)
    source, count = lmdb_source(spark, flags)
    parts = spark.sparkContext.parallelize(range(count), count)
    records = partial(_records, RankRows(source), count)
    write_sequence(spark, parts.flatMap(records), flags.output_path)
    return f"{record_count(source)} records written to {flags.output_path}"


def _records(rows: RankRows, parts: int, part: int) -> Iterator[tuple[bytes, bytes]]:
    for batch in rows.read(part, parts):
        for row in batch.to_pylist():
            key = (row["id"], str(row["label"]), row["channels"], row["height"], row["width"])
            yield picture_key(*key, bool(row["encoded"])), row["data"]


if __name__ == "__main__":
    exit_with(main("LMDB2Sequence", convert, NEEDED))
