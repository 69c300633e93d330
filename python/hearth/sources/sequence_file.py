"""Hadoop's SequenceFiles of BytesWritables. Their units (format.Unit) lie between sync markers.

Keys of CaffeOnSpark's files contain an image's label and size. Other files have the columns `key`
and `value`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile
from hearth.sources.format import BATCH_BYTES, BATCH_ROWS, Format, Read, Unit, not_empty
from hearth.sources.image_keys import IMAGE_COLUMNS, IMAGE_TYPES, values_of
from hearth.sources.sequence_codecs import codec

# A range must fit in memory, and be large enough to be worth a request.
_RANGE_BYTES = 16 << 20
# Records are counted, by reading only their lengths, if a source's shares are at most this large.
_COUNTED_SHARE = 1 << 20
_TYPES = {**IMAGE_TYPES, "key": "binary", "value": "binary"}
# Limit for the values in a batch; leaves space for the other columns.
_VALUE_BYTES = BATCH_BYTES - (256 << 10)


class SequenceFileFormat(Format):
    """SequenceFiles of CaffeOnSpark's images. If a record's key is not an image's, its row has
    nulls and an id derived from the key.
    """

    kind = "SequenceFile"
    views = True

    def data_files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        return not_empty(files)

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        _opened(InputFile(files[0]))
        return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in _TYPES.items()])

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        records = _opened(InputFile(file))
        size = max(1, min(share, _RANGE_BYTES))
        begins = range(0, file.size, size)
        ranges = [(begin, min(begin + size, file.size)) for begin in begins]
        if share > _COUNTED_SHARE:
            return [Unit(found, found[0], found[1] - found[0]) for found in ranges]
        return _counted(records, ranges)

    def joined(self, key: tuple[int, int], following: tuple[int, int]) -> Any:
        return (key[0], following[1]) if key[1] == following[0] else None

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Read:
        return _Reader(file, schema, max((end for _, end in keys), default=0)).read


class _Reader:
    """Reads ranges. Values of an uncompressed local file are views of the mapped file."""

    def __init__(self, file: InputFile, schema: pa.Schema, end: int):
        """`end`: the end of the last range to read."""
        self._file, self._schema, self._end = file, schema, end
        self._free: Any = None  # the core's reader while it is not in use

    def read(self, key: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        # A partly read unit retains its reader, because another split reads the rest.
        records, self._free = self._free or _opened(self._file), None
        records.begin(*key, self._end)
        while found := records.next(BATCH_ROWS, _VALUE_BYTES):
            keys, views, values = found
            buffers = [None, pa.py_buffer(views), pa.py_buffer(values)]
            yield self._batch(keys, pa.Array.from_buffers(pa.binary_view(), len(keys), buffers))
        self._free = records

    def _batch(self, keys: list[bytes], values: pa.Array) -> pa.RecordBatch:
        from hearth.native._core import image_key

        images = [image_key(key) for key in keys]
        columns = zip(*map(values_of, keys, images), strict=True)
        found: dict[str, Any] = dict(zip(IMAGE_COLUMNS, columns, strict=True))
        found |= {"key": keys, "value": values, "data": values}
        if None in images:
            there = pa.array([image is not None for image in images]).buffers()[1]
            buffers = [there, *values.buffers()[1:]]
            found["data"] = pa.Array.from_buffers(values.type, len(keys), buffers)
        arrays = [_column(found[field.name], field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    if not isinstance(values, pa.Array):
        return pa.array(values, kind)
    return values if values.type == kind else values.cast(kind)


def _opened(file: InputFile) -> Any:
    """The core's reader of a file. A file is not mapped if its path is invalid UTF-8."""
    from hearth.native._core import SequenceReader

    name = file.uri.encode(errors="backslashreplace").decode()
    path = file.path if file.path is not None and name == file.uri else ""
    return SequenceReader(name, file, file.stored.size, codec, path)


def _counted(records: Any, ranges: Sequence[tuple[int, int]]) -> list[Unit]:
    """Units with row counts. Sync markers may be further apart than a range is long: a range
    without a marker has no rows, and a range with one extends to the next marker.
    """
    units: list[Unit] = []
    for begin, end in ranges:
        if rows := records.count(begin, end):
            units.append(Unit((begin, end), begin, end - begin, rows))
        elif units:
            last = units[-1]
            units[-1] = Unit(last.key, last.start, last.bytes + end - begin, last.rows)
    return units
