"""Image files with labels, listed in a text file and read by Spark's tasks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hearth.caffeonspark.flags import FlagError
from hearth.errors import code_of, error_class
from hearth.files.tfrecord_files import file_system

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Each partition is written as one file. With images of 150 KB, the file is about as large as a file
# system's block.
_FILES_PER_PARTITION = 512
# Image bytes that a task buffers, in addition to the current image.
_BATCH_BYTES = 8 << 20


def listed(spark: SparkSession, label_file: str, fields: int) -> tuple[DataFrame, int]:
    """Returns a label file's lines as columns name, label and, with three `fields`, id; and their
    number.

    Only the file name may contain spaces. The label is a string, or with three fields a 32-bit
    number. Lines are sorted by name, in partitions of a few hundred, so a second run writes the
    same files.

    Raises:
        FlagError: the file is empty, or has a line with too few fields or an invalid label.
    """
    from pyspark.sql import functions as sql

    tail = r"\s+(\S+)" * (fields - 1)
    pattern = rf"^\s*(\S.*?){tail}\s*$"
    names = ("name", "label", "id")[:fields]
    lines = spark.read.text(label_file).where("trim(value) != ''")
    parts = [sql.regexp_extract("value", pattern, i + 1).alias(x) for i, x in enumerate(names)]
    rows = lines.select("value", sql.col("value").rlike(pattern).alias("whole"), *parts)
    number = sql.expr("try_cast(label as int)")
    is_odd = number.isNull() & sql.lit(fields == 3)
    seen: Any = rows.select(
        sql.count("*").alias("count"),
        sql.first(sql.when(~sql.col("whole"), sql.col("value")), ignorenulls=True).alias("bad"),
        sql.first(sql.when(is_odd, sql.struct("name", "label")), ignorenulls=True).alias("odd"),
    ).first()
    if not seen["count"]:
        raise FlagError(f"-labelFile {label_file} is empty")
    if seen.bad:
        form = "NAME LABEL ID" if fields == 3 else "NAME LABEL"
        line = f"{seen.bad!r:.200}"
        raise FlagError(f"-labelFile {label_file} has a line that is not '{form}': {line}")
    if seen.odd:
        name, label = seen.odd
        raise FlagError(f"-labelFile {label_file}: the label of {name} is not a number: {label}")
    partitions = math.ceil(seen["count"] / _FILES_PER_PARTITION)
    if fields == 3:
        rows = rows.withColumn("label", number)
    return rows.select(*names).repartitionByRange(partitions, "name"), seen["count"]


def read_image(root: str, name: str) -> bytes:
    """Reads a file. Raises OSError that names the file and this host."""
    import socket

    uri = f"{root.rstrip('/')}/{name}"
    system, path = file_system(uri)
    try:
        with system.open_input_stream(path) as file:
            return file.read()
    except OSError as error:
        reason = f"{socket.gethostname()}: {error.strerror or error}"
        raise error_class(code_of(error))(f"{uri} cannot be read on host {reason}") from error


def read_batches(
    root: str, name: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Adds a column `data`: contents of the files in column `name`. Yields small batches."""
    for batch in batches:
        begin, data, held = 0, [], 0
        for row, file in enumerate(batch.column(name).to_pylist()):
            data.append(read_image(root, file))
            held += len(data[-1])
            if held >= _BATCH_BYTES:
                yield _joined(batch.slice(begin, len(data)), data)
                begin, data, held = row + 1, [], 0
        if data:
            yield _joined(batch.slice(begin, len(data)), data)


def _joined(batch: pa.RecordBatch, data: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [*batch.columns, pa.array(data, pa.binary())], names=[*batch.schema.names, "data"]
    )
