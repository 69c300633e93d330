"""ORC files. Their units (format.Unit) are stripes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hearth.errors import invalid
from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile
from hearth.sources.format import (
    Format,
    Read,
    Unit,
    batch_rows,
    check_columns,
    check_starts,
    not_empty,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import orc

# Field numbers of the protobuf messages at the file's end: FileTail, Footer, StripeInformation.
_FOOTER, _STRIPES, _OFFSET, _INDEX_BYTES, _DATA_BYTES, _ROWS = 2, 3, 1, 2, 3, 5


class OrcFormat(Format):
    """ORC files."""

    kind = "ORC"

    def data_files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        return not_empty(files)

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        return _opened(InputFile(files[0])).schema

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        source = _opened(InputFile(file))
        stripes = stripes_of(source)
        if len(stripes) != source.nstripes:
            raise invalid(
                f"{file.uri} is damaged: its footer has {len(stripes)} of {source.nstripes} stripes"
            )
        units = [Unit(i, start, size, rows) for i, (start, size, rows) in enumerate(stripes)]
        return check_starts(file.uri, file.size, units, "stripe")

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Read:
        """Memory: a decoded stripe."""
        opened = _opened(file)
        check_columns(file.uri, opened.schema.names, schema.names)

        def read(key: int) -> Iterator[pa.RecordBatch]:
            batch = opened.read_stripe(key, schema.names).select(schema.names)
            rows = batch_rows(batch.nbytes, batch.num_rows)
            for at in range(0, batch.num_rows, rows):
                yield batch.slice(at, rows)

        return read


def _opened(file: InputFile) -> orc.ORCFile:
    from pyarrow import orc

    return orc.ORCFile(file.for_arrow())


def stripes_of(file: orc.ORCFile) -> list[tuple[int, int, int]]:
    """(offset, bytes, rows) of each stripe, parsed from the file's tail as decompressed by pyarrow,
    which itself only reports the number of stripes.
    """
    footer = _fields(bytes(file.reader.serialized_file_tail())).get(_FOOTER, [b""])[-1]
    stripes = [_fields(stripe) for stripe in _fields(footer).get(_STRIPES, [])]
    wanted = (_OFFSET, _INDEX_BYTES, _DATA_BYTES, _ROWS)
    values = [[stripe.get(number, [0])[-1] for number in wanted] for stripe in stripes]
    return [(offset, index + data, rows) for offset, index, data, rows in values]


def _fields(message: bytes) -> dict[int, list]:
    """Parses a protobuf message to numbers and byte strings by field number."""
    found: dict[int, list] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == 0:
            value, at = _varint(message, at)
        elif key & 7 == 2:
            size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        else:  # fixed-size numbers, unused in these messages
            value, at = b"", at + (8 if key & 7 == 1 else 4)
        found.setdefault(key >> 3, []).append(value)
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Returns (number, end offset). The message is complete, because pyarrow has parsed it."""
    number = shift = 0
    while at < len(message):
        byte, at = message[at], at + 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return number, at
