"""Arrow IPC files (Feather, version 2). Their units (format.Unit) are record batches."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from hearth.errors import invalid
from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile
from hearth.sources.format import BATCH_ROWS, Format, Read, Unit, check_columns, check_starts

_MAGIC = b"ARROW1"
# Reserves no memory, because a file may be larger than the memory: 0x4000 is MAP_NORESERVE, which
# Python 3.11 does not define.
_PRIVATE = mmap.MAP_PRIVATE | 0x4000
# Field numbers in the flatbuffers tables Footer, Message and RecordBatch.
_RECORD_BATCHES, _HEADER_TYPE, _HEADER, _LENGTH = 3, 1, 2, 0
_IS_BATCH = 3
_BLOCK = struct.Struct("<qi4xq")  # offset, metadata size, body size


class ArrowFormat(Format):
    """Arrow IPC files. Batches of local files refer to the mapped file (copied on write)."""

    kind = "Arrow"

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        with InputFile(files[0]).for_arrow() as source:
            return pa.ipc.open_file(source).schema

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        source = InputFile(file)
        units = []
        try:
            for number, (at, head, body) in enumerate(_blocks(source)):
                rows = _rows_of(source.read_at(at, head))
                units.append(Unit(number, at, head + body, rows))
        except struct.error:
            raise invalid(f"{file.uri} is damaged: its footer points outside the file") from None
        return check_starts(file.uri, file.size, units, "record batch")

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Read:
        """Memory: a record batch; for a local file, only the pages that are read."""
        opened = pa.ipc.open_file(file.for_arrow() if file.path is None else _mapped(file.path))
        check_columns(file.uri, opened.schema.names, schema.names)

        def read(key: int) -> Iterator[pa.RecordBatch]:
            batch = opened.get_batch(key).select(schema.names)
            batch.validate(full=True)  # a damaged file may have arbitrary offsets
            for at in range(0, batch.num_rows, BATCH_ROWS):
                yield batch.slice(at, BATCH_ROWS)

        return read


def _mapped(path: str) -> pa.Buffer:
    with open(path, "rb") as file:
        access = mmap.PROT_READ | mmap.PROT_WRITE
        return pa.py_buffer(mmap.mmap(file.fileno(), 0, _PRIVATE, access))


def _blocks(source: InputFile) -> list[tuple[int, int, int]]:
    """(offset, bytes of metadata, bytes of body) of each record batch, read from the file's footer.

    pyarrow would read a whole batch to count its rows; this reads only its metadata.
    """
    size = source.size()
    tail = source.read_at(max(0, size - 10), 10)
    if len(tail) < 10 or not tail.endswith(_MAGIC):
        magic = _MAGIC.decode()
        raise invalid(f"{source.uri} is not an Arrow file: it does not end with {magic}")
    (length,) = struct.unpack_from("<i", tail)
    if not 0 < length <= size - 10:
        raise invalid(
            f"{source.uri} is damaged: its footer claims {length} bytes, but the file has {size}"
        )
    footer = source.read_at(size - 10 - length, length)
    table = struct.unpack_from("<I", footer)[0]
    offset = _field(footer, table, _RECORD_BATCHES)
    if offset is None:
        return []
    vector = offset + struct.unpack_from("<I", footer, offset)[0]
    (count,) = struct.unpack_from("<I", footer, vector)
    if count > length // _BLOCK.size:
        raise invalid(
            f"{source.uri} is damaged: its footer of {length} bytes lists {count} record batches"
        )
    blocks = [_BLOCK.unpack_from(footer, vector + 4 + _BLOCK.size * i) for i in range(count)]
    for at, head, body in blocks:
        if at < 0 or head < 0 or body < 0 or at + head + body > size:
            raise invalid(
                f"{source.uri} is damaged: a record batch at byte {at} is outside the file of "
                f"{size} bytes"
            )
    return blocks


def _rows_of(message: bytes) -> int:
    """The number of rows that a record batch's metadata states."""
    # A message starts with its length, which four 0xFF bytes precede since Arrow 0.15.
    begin = 8 if message[:4] == b"\xff\xff\xff\xff" else 4
    table = begin + struct.unpack_from("<I", message, begin)[0]
    kind = _field(message, table, _HEADER_TYPE)
    header = _field(message, table, _HEADER)
    if kind is None or header is None or message[kind] != _IS_BATCH:
        raise invalid("a message is not a record batch")
    batch = header + struct.unpack_from("<I", message, header)[0]
    length = _field(message, batch, _LENGTH)
    return 0 if length is None else struct.unpack_from("<q", message, length)[0]


def _field(data: bytes, table: int, number: int) -> int | None:
    """The offset of a field in a flatbuffers table; None if it has its default value."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    if fields < 0:
        raise struct.error
    (size,) = struct.unpack_from("<H", data, fields)
    entry = 4 + 2 * number
    offset = struct.unpack_from("<H", data, fields + entry)[0] if entry + 2 <= size else 0
    return table + offset if offset else None
