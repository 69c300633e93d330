"""SequenceFiles of pictures, as CaffeOnSpark's Binary2Sequence and LMDB2Sequence write them."""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.flags import FlagError
from hearth.caffeonspark.java_keys import key_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "id string, label string, channels int, height int, width int, encoded boolean, data binary"
)
_BYTES = "org.apache.hadoop.io.BytesWritable"
_KINDS = ((str,), (str,), (int,), (int,), (int,), (bool, int))


def sequence_frame(spark: SparkSession, uri: str, partitions: int) -> DataFrame:
    """The pictures of a SequenceFile or a folder of them, in at least `partitions` partitions.

    Spark reads it, with any codec that it knows. A key that cannot be read makes a row without
    label and picture, which counts as unusable.

    Raises:
        FlagError: it is not there, is no SequenceFile, or Spark is a Connect one, which cannot.
    """
    if not hasattr(spark, "_jsc"):
        raise FlagError(
            f"{uri}: SequenceFiles need classic Spark, as Spark Connect has no RDDs; or write the "
            "rows as Parquet there and use ImageDataFrame"
        )
    try:
        pairs = spark.sparkContext.sequenceFile(uri, _BYTES, _BYTES, minSplits=partitions)
    except Exception as error:  # of the JVM: no such path, another format
        raise FlagError(f"{uri} cannot be read as a SequenceFile: {_reason(error)}") from None
    return spark.createDataFrame(pairs.map(partial(_row, uri)), SCHEMA, verifySchema=False)


def _row(uri: str, pair: tuple[Any, Any]) -> tuple[Any, ...]:
    if kinds := [type(part).__name__ for part in pair if not isinstance(part, (bytes, bytearray))]:
        raise TypeError(
            f"{uri} has keys or values of Python's type {kinds[0]}; a SequenceFile of pictures has "
            "BytesWritable for both, as Binary2Sequence and LMDB2Sequence write them"
        )
    key, value = bytes(pair[0]), pair[1]
    try:
        return (*_picture_of(key_values(key)), value)
    except ValueError:
        return (f"key {zlib.crc32(key):08x}", None, None, None, None, None, None)


def _picture_of(values: list[Any]) -> tuple[Any, ...]:
    """id, label, channels, height, width, encoded; a key of two is that of a picture file."""
    if len(values) == 2:
        values = [*values, None, None, None, True]
    for value, kinds in zip(values, _KINDS, strict=True):
        if value is not None and not isinstance(value, kinds):
            raise ValueError(f"{value!r:.40} is not what a key has in its place")
        if isinstance(value, int) and value.bit_length() > 31:  # Spark would drop the upper bits
            raise ValueError(f"{value} is no size of a picture")
    *others, encoded = values
    # Spark would take a number in the place of a boolean for null.
    return (*others, encoded if encoded is None else bool(encoded))


def _reason(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() or java) if java is not None else str(error)
    # Spark's own words about the task come before those of the reader.
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
