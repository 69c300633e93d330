"""SequenceFiles of pictures that lie elsewhere: their pieces are stretches of a few megabytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hearth.rows.far_input import FarPiece, check_columns, checked, open_uri
from hearth.rows.file_parts import Part
from hearth.rows.rank_files import Count
from hearth.sources.image_keys import IMAGE_COLUMNS, IMAGE_TYPES, ImageKeys, values_of
from hearth.sources.sequence_reader import SequenceReader

if TYPE_CHECKING:
    import pyarrow as pa

# A piece has the records behind the marks in so many bytes: large enough for one request to pay.
_PIECE_BYTES = 4 << 20
_BATCH_ROWS = 4096
_BATCH_BYTES = 4 << 20


class SequencePieces:
    """As FarFormat. A record whose key cannot be read has nulls in all columns but the id."""

    counts_by_footers = False

    def types(self, uri: str) -> dict[str, str]:
        file = open_uri(uri)
        SequenceReader(uri, file, file.size())
        return dict(IMAGE_TYPES)

    def pieces(self, part: Part, count: Count) -> list[FarPiece]:
        first, last = part.begin // _PIECE_BYTES, (part.end - 1) // _PIECE_BYTES
        return [
            FarPiece(part, number, max(part.begin, number * _PIECE_BYTES))
            for number in range(first, last + 1)
        ]

    def counted_pieces(self, part: Part) -> list[FarPiece]:
        reader = SequenceReader(part.uri, checked(part), part.size)
        return [
            replace(piece, rows=reader.count(*_range_of(piece)))
            for piece in self.pieces(part, lambda size, near: None)
        ]

    def read_piece(
        self, piece: FarPiece, columns: Sequence[str], count: Count
    ) -> Iterator[pa.RecordBatch]:
        return _read(piece.part, _range_of(piece), columns, count)

    def read_part(
        self, part: Part, columns: Sequence[str], count: Count
    ) -> Iterator[pa.RecordBatch]:
        return _read(part, (part.begin, part.end), columns, count)


def _range_of(piece: FarPiece) -> tuple[int, int]:
    part, begin = piece.part, piece.number * _PIECE_BYTES
    return max(part.begin, begin), min(part.end, begin + _PIECE_BYTES)


def _read(
    part: Part, place: tuple[int, int], columns: Sequence[str], count: Count
) -> Iterator[pa.RecordBatch]:
    check_columns(part.uri, list(IMAGE_TYPES), columns)
    reader = SequenceReader(part.uri, _Counted(checked(part), part.near, count), part.size)
    keys = ImageKeys()
    for records in _batched(reader.records(*place)):
        yield _rows(keys, records, columns or list(IMAGE_TYPES))


def _batched(records: Iterable[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    batch: list[tuple[bytes, bytes]] = []
    size = 0
    for record in records:
        batch.append(record)
        size += len(record[1])
        if len(batch) == _BATCH_ROWS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _rows(
    keys: ImageKeys, records: Sequence[tuple[bytes, bytes]], columns: Sequence[str]
) -> pa.RecordBatch:
    import pyarrow as pa

    found: dict[str, list[Any]] = {name: [] for name in IMAGE_TYPES}
    for key, data in records:
        picture = keys.picture_of(key)
        for name, value in zip(IMAGE_COLUMNS, values_of(key, picture), strict=True):
            found[name].append(value)
        found["data"].append(None if picture is None else data)
    types = {name: pa.type_for_alias(IMAGE_TYPES[name]) for name in columns}
    arrays = [pa.array(found[name], kind) for name, kind in types.items()]
    return pa.RecordBatch.from_arrays(arrays, list(columns))


class _Counted:
    """A file that tells of what is read."""

    def __init__(self, file: Any, near: bool, count: Count):
        self._file, self._near, self._count = file, near, count

    def read_at(self, at: int, size: int) -> bytes:
        data: bytes = self._file.read_at(at, size)
        self._count(len(data), self._near)
        return data
