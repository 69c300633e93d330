"""Converts COCO's images and captions for lrcn_cos.prototxt."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hearth.caffeonspark.interrupts import exit_with
from hearth.caffeonspark.tools.DFConversions import DFConversions
from hearth.caffeonspark.tools.output_folders import beneath
from hearth.caffeonspark.tools.program import check_new, exists, main
from hearth.caffeonspark.tools.Vocab import Vocab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Required flags.
NEEDED = (
    "captionFile",
    "imageRoot",
    "output",
    "imageCaptionDFDir",
    "vocabDir",
    "embeddingDFDir",
)


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-captionFile: COCO's json with images and annotations; -imageRoot: folder or URI of its
    images; -output: a folder. Below it, the captions are written to -imageCaptionDFDir as json, the
    -vocabSize most frequent words (default: all) to -vocabDir, and the images, with captions as
    -captionLength (20) numbers, to -embeddingDFDir in -outputFormat (parquet). An existing
    vocabulary in -vocabDir, such as the training set's for a test set, is used unchanged.
    """
    targets = [beneath(flags, name) for name in ("imageCaptionDFDir", "embeddingDFDir")]
    for target in targets:
        check_new(spark, target)
    conversions, words = DFConversions(spark), beneath(flags, "vocabDir")
    parts = max(1, flags.cluster_size)
    captions = conversions.Coco2ImageCaptionFile(flags.caption_file, parts)
    captions.write.json(targets[0])
    if exists(spark, words):
        vocab = Vocab(spark).load(words)
    else:
        vocab = Vocab(spark).genFromData(captions, "caption", flags.vocab_size)
        vocab.save(words)
    rows = conversions.ImageCaption2Embedding(
        flags.image_root, captions, vocab, flags.caption_length
    )
    rows.write.format(flags.output_format).save(targets[1])
    return f"{captions.count()} captions with {len(vocab)} words written to {flags.output_path}"


if __name__ == "__main__":
    exit_with(main("CocoDataSetConverter", convert, NEEDED))
