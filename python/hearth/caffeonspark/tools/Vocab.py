"""A vocabulary of captions, ordered by frequency."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.flags import FlagError
from hearth.caffeonspark.interrupts import exit_with
from hearth.caffeonspark.tools.captions import UNKNOWN, words_of
from hearth.caffeonspark.tools.output_folders import beneath
from hearth.caffeonspark.tools.program import check_new, main
from hearth.spark.session import as_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

# Required flags.
NEEDED = ("output", "imageCaptionDFDir", "vocabDir")


class Vocab:
    """Words by number: the first, "UNK", has number 1 and represents all unknown words."""

    def __init__(self, sc: Any = None, words: Sequence[str] = (UNKNOWN,)):
        """`sc`: a SparkContext or SparkSession (the active one by default)."""
        self._spark = as_session(sc)
        self.words = list(words)

    def genFromData(self, dataset: DataFrame, columnName: str, vocabSize: int = -1) -> Vocab:
        """Sets the words to a text column's `vocabSize` most frequent ones (-1: all); returns self.

        Words with equal counts are sorted alphabetically.
        """
        from pyspark.sql import functions as sql

        sentences = dataset.select(sql.col(columnName).cast("string").alias("sentence"))
        counted = sentences.mapInArrow(_split, "word string").groupBy("word").count()
        ordered = counted.orderBy(sql.desc("count"), "word")
        ordered = ordered if vocabSize < 0 else ordered.limit(vocabSize)
        words = [row.word for row in ordered.collect()]
        self.words = [UNKNOWN, *(word for word in words if word != UNKNOWN)]
        return self

    def save(self, path: str) -> None:
        """Writes the words, one a line, to a text file in the new folder `path` (any Spark URI)."""
        rows = self._spark.createDataFrame([(word,) for word in self.words], "value string")
        rows.coalesce(1).write.text(path)

    def load(self, path: str) -> Vocab:
        """Reads the words of save(), or of any text file that starts with "UNK"; returns self.

        Raises:
            FlagError: the file is not a vocabulary.
        """
        words = [row.value for row in self._spark.read.text(path).collect()]
        if not words or words[0] != UNKNOWN:
            raise FlagError(f"{path} is not a vocabulary: its first line is not {UNKNOWN}")
        self.words = words
        return self

    @property
    def ids(self) -> dict[str, int]:
        """Each word's number."""
        return {word: number for number, word in enumerate(self.words, 1)}

    def __len__(self) -> int:
        return len(self.words)


def _split(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        words: list[str] = []
        for sentence in batch.column("sentence").to_pylist():
            words += words_of(sentence or "")
        yield pa.RecordBatch.from_arrays([pa.array(words, pa.string())], names=["word"])


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-output: the folder that contains captions in -imageCaptionDFDir, as CocoDataSetConverter
    writes them; the -vocabSize most frequent words (default: all) are written to -vocabDir below
    -output.
    """
    target = beneath(flags, "vocabDir")
    check_new(spark, target)
    vocab = Vocab(spark).genFromData(
        spark.read.json(beneath(flags, "imageCaptionDFDir")), "caption", flags.vocab_size
    )
    vocab.save(target)
    return f"{len(vocab)} words written to {target}"


if __name__ == "__main__":
    exit_with(main("Vocab", convert, NEEDED))
