"""SequenceFiles written by Python tasks themselves: through the JVM every byte would be pickled."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.files.tfrecord_files import (
    file_system,
    finish,
    publish,
    remove_hidden,
    remove_unfinished,
)
from hearth.files.uri import is_local, local_path, scheme, whole_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASS = b"org.apache.hadoop.io.BytesWritable"
# Version 6; key's and value's class, each after its length; neither compressed; no metadata.
_VERSION = b"SEQ\x06"
_NAMES = (bytes([len(_CLASS)]) + _CLASS) * 2
_PLAIN = b"\0\0" + b"\0\0\0\0"
_MARK_BYTES = 16
# From one mark to the next, by which a reader of a split finds a record's begin; Hadoop's own.
_INTERVAL = 100 << 10


def write_sequence(spark: SparkSession, records: Any, output: str) -> None:
    """Writes an RDD of (key, value), both bytes, as SequenceFile<BytesWritable, BytesWritable>.

    `output`: a folder that is not there. A part file for each partition; nothing is left where one
    fails.
    """
    try:
        target = _target(spark, output)
        system, path = file_system(target)
    except ValueError:  # of a file system that Hadoop alone knows
        pairs = records.map(lambda record: (bytearray(record[0]), bytearray(record[1])))
        pairs.saveAsSequenceFile(output)
        return
    system.create_dir(path, recursive=True)
    try:
        records.mapPartitionsWithIndex(partial(_write_part, target)).count()
        remove_unfinished(target)  # of attempts that were killed
        finish(target)
    except BaseException:
        system.delete_dir(path)
        raise


def _target(spark: SparkSession, output: str) -> str:
    """Where tasks write: a path, or a whole URI."""
    if is_local(output, spark):
        return local_path(output) or output
    return whole_uri(output, spark) if scheme(output) in ("", "hdfs", "viewfs") else output


def _write_part(target: str, part: int, records: Iterable[tuple[bytes, bytes]]) -> Iterator[None]:
    """The file appears when it is complete; of several attempts, the first's."""
    from pyspark import TaskContext

    attempt = TaskContext.get().taskAttemptId()
    system, path = file_system(target)
    hidden, final = f"{path}/_part-{part:05d}.{attempt}", f"{path}/part-{part:05d}"
    try:
        with system.open_output_stream(hidden) as file:
            write_records(file, records)
        publish(system, hidden, final)
    finally:
        remove_hidden(system, hidden)
    yield from ()


def write_records(file: Any, records: Iterable[tuple[bytes, bytes]]) -> None:
    """Writes a whole SequenceFile to something with write()."""
    mark = os.urandom(_MARK_BYTES)
    file.write(_VERSION + _NAMES + _PLAIN + mark)
    since_mark = 0
    for key, value in records:
        if since_mark >= _INTERVAL:
            file.write(struct.pack(">i", -1) + mark)
            since_mark = 0
        # Both are written as BytesWritable does: after their lengths.
        head = struct.pack(">iii", len(key) + len(value) + 8, len(key) + 4, len(key))
        file.write(head + key + struct.pack(">i", len(value)))
        file.write(value)
        since_mark += len(key) + len(value)
