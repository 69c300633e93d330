"""SequenceFiles of images, as written by CaffeOnSpark's Binary2Sequence and LMDB2Sequence."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.flags import FlagError
from hearth.sources.image_keys import values_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "id string, label string, channels int, height int, width int, encoded boolean, data binary"
)
_BYTES = "org.apache.hadoop.io.BytesWritable"


def sequence_frame(spark: SparkSession, uri: str, partitions: int) -> DataFrame:
    """The images of a SequenceFile or a folder of them, in at least `partitions` partitions.

    Spark reads the files, with any codec that it supports. A record with an unreadable key becomes
    a row without label and image, which counts as invalid.

    Raises:
        FlagError: the path is missing or not a SequenceFile, or the session is Spark Connect's.
    """
    if not hasattr(spark, "_jsc"):
        raise FlagError(
            f"{uri}: SequenceFiles need classic Spark, as Spark Connect has no RDDs: use classic "
            "Spark, or write the rows as Parquet and read them with ImageDataFrame"
        )
    try:
        pairs: Any = spark.sparkContext.sequenceFile(uri, _BYTES, _BYTES, minSplits=partitions)
    except Exception as error:  # from the JVM: missing path, another format
        raise FlagError(f"{uri} cannot be read as a SequenceFile: {_reason(error)}") from error
    return spark.createDataFrame(pairs.map(partial(_row, uri)), SCHEMA, verifySchema=False)


def _row(uri: str, pair: tuple[Any, Any]) -> tuple[Any, ...]:
    from hearth.native._core import image_key

    if kinds := [type(part).__name__ for part in pair if not isinstance(part, (bytes, bytearray))]:
        raise TypeError(
            f"{uri} has keys or values of Python's type {kinds[0]}; a SequenceFile of images has "
            "BytesWritable for both, as Binary2Sequence and LMDB2Sequence write them"
        )
    key = bytes(pair[0])
    image = image_key(key)
    return (*values_of(key, image), None if image is None else pair[1])


def _reason(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() or java) if java is not None else str(error)
    # The first line is Spark's message about the task; the reader's message follows.
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
