"""Converts an LMDB of Datums to a SequenceFile for SeqImageDataSource."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from hearth.caffeonspark.interrupts import exit_with
from hearth.caffeonspark.tools.databases import lmdb_source, record_count
from hearth.caffeonspark.tools.program import main
from hearth.caffeonspark.tools.sequence_keys import check_classic, datum_key
from hearth.caffeonspark.tools.sequence_parts import write_sequence
from hearth.sources.rank_rows import RankRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Required flags.
NEEDED = ("imageRoot", "output")


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-imageRoot: the LMDB, on a path that all hosts see; -lmdb_partitions: number of parts to read
    (default: one per 128 MiB); -output: the SequenceFile (a folder of parts), key (id, label,
    channels, height, width, encoded), value the image's bytes.
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
            yield datum_key(*key, bool(row["encoded"])), row["data"]


if __name__ == "__main__":
    exit_with(main("LMDB2Sequence", convert, NEEDED))
