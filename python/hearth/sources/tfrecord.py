"""TFRecord files of tf.train.Examples. Their units (format.Unit) are ranges of records.

The format has no sync markers. A small file is scanned for its records. In a large file, the start
of a record is recognised by the checksum of its length, and the reader verifies that each range
ends at the end of a record. A gzip file can only be read from its beginning.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hearth.errors import DataLossError, invalid
from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile
from hearth.sources.format import BATCH_ROWS, Format, Read, Unit

if TYPE_CHECKING:
    import pyarrow as pa

_GZIP = b"\x1f\x8b"
# A record: its length, a checksum of these 8 bytes, the data, a checksum of the data.
_HEADER = struct.Struct("<QI")
_TRAILER_BYTES = 4
# A scan reads all bytes, so larger files, and files of sources with larger shares, are not scanned.
# A range is read at once, so it is limited to some megabytes.
_SCANNED_BYTES, _SCANNED_SHARE = 64 << 20, 1 << 20
_RANGE_BYTES = 16 << 20
_WINDOW_BYTES = 1 << 20
# An offset counts as a record's start if this many consecutive records start there.
_CHAIN = 3


class TfRecordFormat(Format):
    """TFRecord files of tf.train.Examples."""

    kind = "TFRecord"

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema

        from hearth.files.tfrecord_files import inferred_schema, left_schema

        left = left_schema(files[0].uri.rpartition("/")[0])
        return to_arrow_schema(left or inferred_schema(_first_records(f) for f in files if f.size))

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        if file.size == 0:
            return []
        source = InputFile(file)
        size, wanted = file.size, min(share, _RANGE_BYTES)
        if source.read_at(0, 2) == _GZIP:
            return [Unit(None, 0, size)]
        if size <= 1.5 * share and size <= 2 * _RANGE_BYTES:
            return [Unit((0, size), 0, size)]
        if size <= _SCANNED_BYTES and share <= _SCANNED_SHARE:
            return list(_scanned(source, wanted))
        ends = [*_boundaries(source, wanted), size]
        return [Unit((a, b), a, b - a) for a, b in zip([0, *ends], ends, strict=False) if a < b]

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Read:
        return _Reader(file, schema).read


class _Reader:
    """Reads ranges. Memory: a range, or a whole gzip file if it is remote."""

    def __init__(self, file: InputFile, schema: pa.Schema):
        self._file, self._schema = file, schema

    def read(self, key: tuple[int, int] | None) -> Iterator[pa.RecordBatch]:
        from hearth.files.tfrecord_schema import arrow_batch, arrow_kind

        records = _open_range(self._file, key)
        wanted = [(field.name, arrow_kind(field.type)) for field in self._schema]
        while (found := self._next(records, wanted, key)) is not None:
            yield arrow_batch(self._schema, *found)

    def _next(self, records: Any, wanted: list[tuple[str, str]], key: Any) -> Any:
        try:
            return records.read(wanted, BATCH_ROWS)
        except (OSError, DataLossError) as error:
            if key in (None, (0, self._file.stored.size)):
                raise
            raise invalid(
                f"{error}. Records that contain TFRecords cannot be read from the middle of a "
                "file: compress the file with gzip, so that one rank reads all of it"
            ) from error


def _open_range(file: InputFile, key: tuple[int, int] | None) -> Any:
    """A TfRecordReader for a range, or for the whole file."""
    from hearth.files.tfrecord_files import open_records

    if key is None and file.path is not None:
        return open_records(file.path)
    size = file.stored.size
    begin, end = key or (0, size)
    data = file.read_at(begin, end - begin)
    if len(data) < end - begin:
        raise invalid(f"{file.uri} ends at byte {begin + len(data)} instead of {size}")
    name = file.uri if (begin, end) == (0, size) else f"{file.uri} from byte {begin} on"
    return open_records(data, name)


def _first_records(file: StoredFile) -> Any:
    """A TfRecordReader for a file, or for at least the first megabyte of a large one."""
    source = InputFile(file)
    if file.size <= _RANGE_BYTES or source.read_at(0, 2) == _GZIP:
        return _open_range(source, None)
    return _open_range(source, next(_scanned(source, _WINDOW_BYTES)).key)


def _scanned(source: InputFile, wanted: int) -> Iterator[Unit]:
    """Divides the file into units of about `wanted` bytes by reading the records' lengths."""
    begin = at = rows = base = 0
    data = b""
    while at < source.size():
        if at + _HEADER.size > base + len(data):
            base, data = at, source.read_at(at, _WINDOW_BYTES)
        if len(data) - (at - base) < _HEADER.size:
            raise invalid(f"{source.uri} is damaged: it ends in a record at byte {at}")
        length, _ = _HEADER.unpack_from(data, at - base)
        at += _HEADER.size + length + _TRAILER_BYTES
        rows += 1
        if at > source.size():
            raise invalid(f"{source.uri} is damaged: record {rows} ends after the file")
        if at - begin >= wanted or at == source.size():
            yield Unit((begin, at), begin, at - begin, rows)
            begin, rows = at, 0


def _boundaries(source: InputFile, wanted: int) -> Iterator[int]:
    """Offsets of records, about `wanted` bytes apart."""
    at, size = wanted, source.size()
    while at + wanted // 2 < size:
        found = _next_record(source, at)
        if found is None:
            return
        yield found
        at = max(found, at) + wanted


def _next_record(source: InputFile, begin: int) -> int | None:
    """The offset of the first record at or after `begin`; None if no record follows."""
    size = source.size()
    for base in range(begin, size, _WINDOW_BYTES):
        data = source.read_at(base, _WINDOW_BYTES + _HEADER.size)
        # Searches for four zero bytes, the upper half of a length below 4 GiB.
        zeros = data.find(bytes(4), 4)
        while 0 <= zeros < len(data) - 8:
            at = base + zeros - 4
            if _is_header(data, zeros - 4) and _is_chain(source, at):
                return at
            zeros = data.find(bytes(4), zeros + 1)
    return None


def _is_header(data: bytes, at: int) -> bool:
    from hearth.native._core import masked_crc32c

    return _HEADER.unpack_from(data, at)[1] == masked_crc32c(data[at : at + 8])


def _is_chain(source: InputFile, at: int) -> bool:
    """Whether _CHAIN consecutive records start at `at`, or fewer that end with the file."""
    for _ in range(_CHAIN):
        header = source.read_at(at, _HEADER.size)
        if len(header) < _HEADER.size or not _is_header(header, 0):
            return False
        at += _HEADER.size + _HEADER.unpack(header)[0] + _TRAILER_BYTES
        if at >= source.size():
            return at == source.size()
    return True
