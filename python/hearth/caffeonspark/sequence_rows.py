"""Local SequenceFiles of pictures that are not compressed, as tasks and ranks read them themselves.

Spark's own reader has every byte pickled on its way. (Those of other file systems, which are not
mapped, and compressed ones there: hearth.sources.sequence_reader.)
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hearth.caffeonspark.sequence_file import SCHEMA
from hearth.rows.file_rows import read_parts
from hearth.rows.rank_files import RankFiles
from hearth.sources.image_keys import IMAGE_COLUMNS, ImageKeys, values_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

# Of a batch: some pictures, or many small ones.
_BATCH_BYTES = (4 << 20) - (256 << 10)
_BATCH_ROWS = 4096


@dataclass(frozen=True)
class SequenceRows(RankFiles):
    """The records of the files, as they were when they were found: (path, bytes) of each.

    Parts have about equally many bytes; they begin at marks, so a small file may be in one alone.
    """

    files: tuple[tuple[str, int], ...]
    kind = "SequenceFile"

    @classmethod
    def find(cls, path: str) -> SequenceRows | None:
        """Those of a file or a folder; None where Spark's reader must see what there is."""
        names = [path]
        if os.path.isdir(path):
            names = sorted(
                entry.path for entry in os.scandir(path) if not entry.name.startswith(("_", "."))
            )
        if not names or not all(map(_is_utf8, names)) or not all(map(_is_plain, names)):
            return None
        return cls(tuple((name, os.path.getsize(name)) for name in names))

    def read(self, part: int, parts: int) -> Iterator[pa.RecordBatch]:
        """The rows of one part; `data` are views of the file.

        Raises:
            ValueError: a file is damaged, or not as it was found.
        """
        total = sum(size for _, size in self.files)
        low, high = part * total // parts, (part + 1) * total // parts
        for path, size in self.files:
            if low < size and high > 0:
                yield from _batches(path, size, max(low, 0), high)
            low, high = low - size, high - size

    def frame(self, spark: SparkSession, least: int) -> DataFrame:
        """All rows as a DataFrame of at least so many partitions."""
        parts = max(least, sum(size for _, size in self.files) >> 27)
        numbers = spark.range(0, parts, 1, parts)
        return numbers.mapInArrow(partial(read_parts, self, parts), SCHEMA)


def _is_utf8(path: str) -> bool:
    """Whether the core can name the file."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_plain(path: str) -> bool:
    from hearth.native._core import SequenceRecords

    try:
        with open(path, "rb") as file:
            return SequenceRecords.reads(file.read(SequenceRecords.head_bytes()))
    except OSError:
        return False


def _batches(path: str, size: int, low: int, high: int) -> Iterator[pa.RecordBatch]:
    """The records of one file between the first marks at or behind `low` and `high`; batches keep
    its mapping."""
    from hearth.native._core import SequenceRecords

    found = os.path.getsize(path)
    if found != size:
        raise ValueError(
            f"{path} has {found} bytes instead of {size} on host {socket.gethostname()}: a run "
            "reads the files that its driver found when it began; put it back, make it visible to "
            "all hosts under this path, or start the run again"
        )
    reader = ImageKeys()
    records = SequenceRecords(path, low, high)
    while batch := records.next(_BATCH_ROWS, _BATCH_BYTES):
        yield _rows(reader, *batch)


def _rows(reader: ImageKeys, keys: list[bytes], views: bytes, values: memoryview) -> pa.RecordBatch:
    """Those whose key cannot be read have nulls in all columns but the id."""
    import pyarrow as pa

    pictures = [reader.picture_of(key) for key in keys]
    rows = map(values_of, keys, pictures)
    ids, labels, *numbers, encoded = zip(*rows, strict=True)
    columns = [pa.array(ids, pa.string()), pa.array(labels, pa.string())]
    columns += [pa.array(column, pa.int32()) for column in numbers]
    columns.append(pa.array(encoded, pa.bool_()))
    there = None
    if None in pictures:
        there = pa.array([picture is not None for picture in pictures]).buffers()[1]
    buffers = [there, pa.py_buffer(views), pa.py_buffer(values)]
    columns.append(pa.Array.from_buffers(pa.binary_view(), len(keys), buffers))
    return pa.RecordBatch.from_arrays(columns, names=[*IMAGE_COLUMNS, "data"])
