"""ORC files that lie elsewhere: their pieces are stripes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hearth.files.core_input import CoreInput
from hearth.rows.far_input import FarPiece, check_columns, open_part, open_uri, within
from hearth.rows.file_parts import Part
from hearth.rows.rank_files import Count

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import orc

_BATCH_ROWS = 4096
# Fields of the messages at a file's end: FileTail, Footer, StripeInformation.
_FOOTER, _STRIPES, _OFFSET, _ROWS = 2, 3, 1, 5


class OrcPieces:
    """As FarFormat. Memory: a stripe, decoded."""

    counts_by_footers = True

    def types(self, uri: str) -> dict[str, str]:
        import pyarrow as pa
        from pyarrow import orc

        with pa.PythonFile(CoreInput(open_uri(uri)), mode="r") as source:
            return {field.name: str(field.type) for field in orc.ORCFile(source).schema}

    def pieces(self, part: Part, count: Count) -> list[FarPiece]:
        from pyarrow import orc

        with open_part(part, count) as source:
            return _stripes_in(part, orc.ORCFile(source))

    def counted_pieces(self, part: Part) -> list[FarPiece]:
        return self.pieces(part, lambda size, near: None)

    def read_piece(
        self, piece: FarPiece, columns: Sequence[str], count: Count
    ) -> Iterator[pa.RecordBatch]:
        from pyarrow import orc

        with open_part(piece.part, count) as source:
            yield from _read_stripe(piece.part.uri, orc.ORCFile(source), piece.number, columns)

    def read_part(
        self, part: Part, columns: Sequence[str], count: Count
    ) -> Iterator[pa.RecordBatch]:
        from pyarrow import orc

        with open_part(part, count) as source:
            file = orc.ORCFile(source)
            for piece in _stripes_in(part, file):
                yield from _read_stripe(part.uri, file, piece.number, columns)


def _read_stripe(
    uri: str, file: orc.ORCFile, stripe: int, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    check_columns(uri, file.schema.names, columns)
    batch = file.read_stripe(stripe, list(columns) or None)
    batch = batch.select(list(columns)) if columns else batch
    for at in range(0, batch.num_rows, _BATCH_ROWS):
        yield batch.slice(at, _BATCH_ROWS)


def _stripes_in(part: Part, file: orc.ORCFile) -> list[FarPiece]:
    """pyarrow tells how many stripes there are, but not where; the file's end, which it gives
    unpacked, does."""
    footer = _fields(bytes(file.reader.serialized_file_tail())).get(_FOOTER, [b""])[-1]
    stripes = [_fields(stripe) for stripe in _fields(footer).get(_STRIPES, [])]
    if len(stripes) != file.nstripes:
        raise ValueError(f"{part.uri} is damaged: its footer has {len(stripes)} stripes")
    pieces = [
        FarPiece(part, i, stripe.get(_OFFSET, [0])[-1], stripe.get(_ROWS, [0])[-1])
        for i, stripe in enumerate(stripes)
    ]
    return within(part, pieces, "stripe")


def _fields(message: bytes) -> dict[int, list]:
    """The numbers and byte strings of a message in protobuf's binary format, by field."""
    found: dict[int, list] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == 0:
            value, at = _varint(message, at)
        elif key & 7 == 2:
            size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        else:  # numbers of 8 or 4 bytes, which nothing here has
            value, at = b"", at + (8 if key & 7 == 1 else 4)
        found.setdefault(key >> 3, []).append(value)
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """(number, where it ends); pyarrow has read the message before, so that it is whole."""
    number = shift = 0
    while at < len(message):
        byte, at = message[at], at + 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return number, at
