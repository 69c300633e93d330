"""Converts images and their captions to numbers, with an existing vocabulary."""

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
NEEDED = ("imageRoot", "output", "imageCaptionDFDir", "embeddingDFDir")


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-imageRoot: folder or URI of the images; -output: the folder that contains captions in
    -imageCaptionDFDir and words in -vocabDir, as CocoDataSetConverter writes them; without
    -vocabDir only the images are converted. The rows are written to -embeddingDFDir below -output,
    in -outputFormat (parquet), each caption as -captionLength (20) numbers.
    """
    target = beneath(flags, "embeddingDFDir")
    check_new(spark, target)
    conversions = DFConversions(spark)
    captions = spark.read.json(beneath(flags, "imageCaptionDFDir"))
    if flags.vocab_dir:
        vocab = Vocab(spark).load(beneath(flags, "vocabDir"))
        rows = conversions.ImageCaption2Embedding(
            flags.image_root, captions, vocab, flags.caption_length
        )
    else:
        rows = conversions.Image2Embedding(flags.image_root, captions)
    rows.write.format(flags.output_format).save(target)
    return f"{captions.count()} images written to {target} as {flags.output_format}"


if __name__ == "__main__":
    exit_with(main("Image2Embedding", convert, NEEDED))
