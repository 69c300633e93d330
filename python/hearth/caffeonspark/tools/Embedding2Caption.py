"""Converts lists of numbers, a net's output or training data, to captions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hearth.caffeonspark.interrupts import exit_with
from hearth.caffeonspark.tools.DFConversions import DFConversions
from hearth.caffeonspark.tools.output_folders import beneath
from hearth.caffeonspark.tools.program import check_new, main
from hearth.caffeonspark.tools.Vocab import Vocab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Required flags.
NEEDED = ("output", "embeddingDFDir", "vocabDir", "imageCaptionDFDir")


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-output: the folder that contains rows with target_sentence in -embeddingDFDir, and words in
    -vocabDir. Each row's id, numbers and caption are written to the folder -imageCaptionDFDir below
    -output, as json.
    """
    target = beneath(flags, "imageCaptionDFDir")
    check_new(spark, target)
    vocab = Vocab(spark).load(beneath(flags, "vocabDir"))
    rows = spark.read.format(flags.output_format).load(beneath(flags, "embeddingDFDir"))
    rows = rows.select("id", "target_sentence")
    said = DFConversions(spark).Embedding2Caption(rows, vocab, "target_sentence", "caption")
    said.write.json(target)
    return f"{rows.count()} captions written to {target}"


if __name__ == "__main__":
    exit_with(main("Embedding2Caption", convert, NEEDED))
