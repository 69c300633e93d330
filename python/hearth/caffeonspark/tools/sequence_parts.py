"""SequenceFiles of images, written by Python tasks."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.tools.parts import part_file, task_folder, write_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASS = b"org.apache.hadoop.io.BytesWritable"
# The header: version 6, class names of key and value, no compression, no metadata.
_VERSION = b"SEQ\x06"
_NAMES = (bytes([len(_CLASS)]) + _CLASS) * 2
_PLAIN = b"\0\0" + b"\0\0\0\0"
_MARK_BYTES = 16
# Bytes between sync markers, at which a split's reader finds the next record; Hadoop's value.
_INTERVAL = 100 << 10


def write_sequence(spark: SparkSession, records: Any, output: str) -> None:
    """Writes an RDD of (key, value), both bytes, as SequenceFile<BytesWritable, BytesWritable>.

    `output`: a new folder, with a part file for each partition. It is removed if a part fails.
    """
    target = task_folder(spark, output)
    if target is None:
        pairs = records.map(lambda record: (bytearray(record[0]), bytearray(record[1])))
        pairs.saveAsSequenceFile(output)
        return
    write_folder(target, records.mapPartitionsWithIndex(partial(_write_part, target)).count)


def _write_part(target: str, part: int, records: Iterable[tuple[bytes, bytes]]) -> Iterator[None]:
    with part_file(target, part) as file:
        write_records(file, records)
    yield from ()


def write_records(file: Any, records: Iterable[tuple[bytes, bytes]]) -> None:
    """Writes a whole SequenceFile to an object with write()."""
    mark = os.urandom(_MARK_BYTES)
    file.write(_VERSION + _NAMES + _PLAIN + mark)
    since_mark = 0
    for key, value in records:
        if since_mark >= _INTERVAL:
            file.write(struct.pack(">i", -1) + mark)
            since_mark = 0
        # Like BytesWritable, the key and the value each follow their length.
        head = struct.pack(">iii", len(key) + len(value) + 8, len(key) + 4, len(key))
        file.write(head + key + struct.pack(">i", len(value)))
        file.write(value)
        since_mark += len(key) + len(value)
