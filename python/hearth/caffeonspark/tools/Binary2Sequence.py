"""Converts image files with labels to a SequenceFile for SeqImageDataSource."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.interrupts import exit_with
from hearth.caffeonspark.tools.images import listed, read_image
from hearth.caffeonspark.tools.program import main
from hearth.caffeonspark.tools.sequence_keys import check_classic, pair_key
from hearth.caffeonspark.tools.sequence_parts import write_sequence
from hearth.files.uri import whole_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Required flags.
NEEDED = ("imageRoot", "labelFile", "output")


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-imageRoot: folder or URI of the images; -labelFile: lines `NAME LABEL`, NAME relative to the
    root; -output: the SequenceFile (a folder of parts), key (NAME, LABEL), value the file's bytes.
    """
    check_classic(spark, flags.output_path)
    rows, count = listed(spark, flags.label_file, 2)
    root = whole_uri(flags.image_root, spark)
    write_sequence(spark, rows.rdd.map(partial(_record, root)), flags.output_path)
    return f"{count} images written to {flags.output_path}"


def _record(root: str, row: Any) -> tuple[bytes, bytes]:
    return pair_key(row.name, row.label), read_image(root, row.name)


if __name__ == "__main__":
    exit_with(main("Binary2Sequence", convert, NEEDED))
