"""Local SequenceFiles of pictures that are not compressed, as tasks and ranks read them themselves.

Spark's own reader has every byte pickled on its way. (Those of other file systems, which are not
mapped, and compressed ones there: hearth.rows.sequence_reader.)
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.sequence_file import SCHEMA
from hearth.rows.file_rows import read_parts
from hearth.rows.java_keys import KeyReader
from hearth.rows.picture_keys import PICTURE_COLUMNS, name_of, picture_of
from hearth.rows.rank_files import RankFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_CLASS = b"org.apache.hadoop.io.BytesWritable"
# Version 6; key's and value's class, each after its length; neither compressed; no metadata.
_HEADER = b"SEQ\x06" + (bytes([len(_CLASS)]) + _CLASS) * 2 + b"\0\0" + b"\0\0\0\0"
_MARK_BYTES = 16
_BEGIN = len(_HEADER) + _MARK_BYTES
_ESCAPE = b"\xff\xff\xff\xff"  # in the place of a record's length; the file's mark follows
_MARKED = len(_ESCAPE) + _MARK_BYTES
# Of a batch: some pictures, or many small ones.
_BATCH_BYTES = (4 << 20) - (256 << 10)
_BATCH_ROWS = 4096
_INLINE_BYTES = 12


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
                yield from _File(path, size).batches(low, high)
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
    try:
        with open(path, "rb") as file:
            head = file.read(_BEGIN)
    except OSError:
        return False
    return head.startswith(_HEADER) and len(head) == _BEGIN


class _File:
    """One file, mapped; batches keep the mapping."""

    def __init__(self, path: str, size: int):
        from hearth.native._core import MappedFile

        self._path = path
        found = os.path.getsize(path)
        if found != size:
            raise ValueError(
                f"{path} has {found} bytes instead of {size} on host {socket.gethostname()}: a "
                "run reads the files that its driver found when it began; put it back, make it "
                "visible to all hosts under this path, or start the run again"
            )
        self._file = MappedFile(path)
        self._data = self._file.view()
        self._keys = KeyReader()
        self._escape = _ESCAPE + bytes(self._data[len(_HEADER) : _BEGIN])

    def batches(self, low: int, high: int) -> Iterator[pa.RecordBatch]:
        """The records between the first marks at or behind `low` and `high`."""
        at, end = self._mark(low), self._mark(high)
        batch = _Batch(self._data, self._keys)
        while at < end:
            if self._data[at : at + _MARKED] == self._escape:
                at += _MARKED
                continue
            key, begin, behind = self._record(at)
            if batch.is_full(behind - begin):
                yield batch.built()
                batch = _Batch(self._data, self._keys)
            batch.add(bytes(self._data[key : begin - 4]), begin, behind)
            at = behind
        if at > end:
            raise self._damaged(end)
        if batch.rows:
            yield batch.built()

    def _mark(self, at: int) -> int:
        """Where the first mark at or behind it is; the file's end behind the last one."""
        if at <= _BEGIN:
            return _BEGIN
        found = self._file.find(self._escape, at)
        return len(self._data) if found < 0 else found

    def _record(self, at: int) -> tuple[int, int, int]:
        """Where the key of the record at `at` begins, its value (4 bytes behind the key, for its
        length), and what is behind it."""
        room = len(self._data) - at - 8
        if room < 0:
            raise self._damaged(at)
        size, key_size = struct.unpack_from(">ii", self._data, at)
        if not 4 <= key_size <= size - 4 <= room - 4:
            raise self._damaged(at)
        value, behind = at + 8 + key_size, at + 8 + size
        lengths = (key_size - 4, size - key_size - 4)
        if (self._number(at + 8), self._number(value)) != lengths:
            raise self._damaged(at)
        return at + 12, value + 4, behind

    def _number(self, at: int) -> int:
        return struct.unpack_from(">i", self._data, at)[0]

    def _damaged(self, at: int) -> ValueError:
        return ValueError(
            f"{self._path} is damaged at byte {at} of {len(self._data)}: there is no whole record; "
            "write it again"
        )


class _Batch:
    """Rows of one file."""

    def __init__(self, data: memoryview, reader: KeyReader):
        self._data, self._reader = data, reader
        self._keys: list[tuple[Any, ...]] = []
        self._places: list[tuple[int, int] | None] = []
        self._bytes = 0

    @property
    def rows(self) -> int:
        return len(self._keys)

    def is_full(self, size: int) -> bool:
        """Whether a picture of that size begins another one."""
        many = self._bytes + size > _BATCH_BYTES or self.rows == _BATCH_ROWS
        return many and self.rows > 0

    def add(self, key: bytes, begin: int, behind: int) -> None:
        """A record whose value is there in the file."""
        picture = picture_of(key, self._reader.values)
        self._keys.append(picture or (name_of(key), *[None] * 5))
        self._places.append(None if picture is None else (begin, behind))
        self._bytes += behind - begin

    def built(self) -> pa.RecordBatch:
        import pyarrow as pa

        ids, labels, *numbers, encoded = zip(*self._keys, strict=True)
        columns = [pa.array(ids, pa.string()), pa.array(labels, pa.string())]
        columns += [pa.array(values, pa.int32()) for values in numbers]
        columns += [pa.array(encoded, pa.bool_()), self._views()]
        return pa.RecordBatch.from_arrays(columns, names=[*PICTURE_COLUMNS, "data"])

    def _views(self) -> pa.Array:
        """The values where they lie in the file, as Arrow's format of binary views has it."""
        import pyarrow as pa

        first = next((place[0] for place in self._places if place is not None), 0)
        views = bytearray(16 * self.rows)
        for row, place in enumerate(self._places):
            if place is None:
                continue
            begin, behind = place
            size = behind - begin
            if size <= _INLINE_BYTES:
                inline = bytes(self._data[begin:behind])
                struct.pack_into("<i12s", views, 16 * row, size, inline)
            else:
                prefix = bytes(self._data[begin : begin + 4])
                struct.pack_into("<i4sii", views, 16 * row, size, prefix, 0, begin - first)
        there = pa.array([place is not None for place in self._places])
        file = pa.py_buffer(self._data).slice(first)
        buffers = [there.buffers()[1], pa.py_buffer(views), file]
        return pa.Array.from_buffers(pa.binary_view(), self.rows, buffers)
