"""Picture files and their labels as a SequenceFile, which SeqImageDataSource reads."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.interrupts import exit_with
from hearth.caffeonspark.tools.pictures import listed, read_picture
from hearth.caffeonspark.tools.program import main
from hearth.caffeonspark.tools.sequence_keys import check_classic, pair_key
from hearth.caffeonspark.tools.sequence_parts import write_sequence
from hearth.files.uri import whole_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Flags that it cannot do without.
NEEDED = ("imageRoot", "labelFile", "output")


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-imageRoot: folder or URI of the pictures; -labelFile: lines `NAME LABEL`, NAME under the
    root; -output: the SequenceFile (a folder of parts), key (NAME, LABEL), value the file's bytes.
    """
    check_classic(spark, flags.output_path)
    rows, count = listed(spark, flags.label_file, 2)
    root = whole_uri(flags.image_root, spark)
    write_sequence(spark, rows.rdd.map(partial(_record, root)), flags.output_path)
    return f"{count} pictures written to {flags.output_path}"


def _record(root: str, row: Any) -> tuple[bytes, bytes]:
    return pair_key(row.name, row.label), read_picture(root, row.name)


if __name__ == "__main__":
    exit_with(main("Binary2Sequence", convert, NEEDED))
