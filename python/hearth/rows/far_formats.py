"""The formats of files elsewhere that can be read from the middle: in pieces, each by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from hearth.rows.far_input import FarPiece
from hearth.rows.file_parts import Part
from hearth.rows.orc_pieces import OrcPieces
from hearth.rows.parquet_pieces import ParquetPieces
from hearth.rows.rank_files import Count
from hearth.rows.sequence_pieces import SequencePieces

if TYPE_CHECKING:
    import pyarrow as pa


class FarFormat(Protocol):
    """Any thread. All of it raises ValueError for a file that is not as the driver saw it, lacks a
    column or is damaged, and OSError or HearthError for one that cannot be read."""

    # Whether a file's end tells how many rows its pieces have; else they are counted one by one.
    counts_by_footers: bool

    def types(self, uri: str) -> dict[str, str]:
        """The columns of a file and their types in Arrow."""

    def pieces(self, part: Part, count: Count) -> list[FarPiece]:
        """Those that begin in the part. `count` is told of what was read."""

    def counted_pieces(self, part: Part) -> list[FarPiece]:
        """The same, with their numbers of rows."""

    def read_piece(
        self, piece: FarPiece, columns: Sequence[str], count: Count
    ) -> Iterator[pa.RecordBatch]:
        """All its rows, in the same batches each time; `columns`: which, none: all."""

    def read_part(
        self, part: Part, columns: Sequence[str], count: Count
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the pieces that begin in the part, in order."""


# By the names that Spark has for them, but for SequenceFiles, which it reads by another call.
FAR_FORMATS: Mapping[str, FarFormat] = {
    "parquet": ParquetPieces(),
    "orc": OrcPieces(),
    "sequence": SequencePieces(),
}


def sliced(piece: FarPiece, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows [begin, end) of those that the piece has."""
    at = 0
    for batch in batches:
        if piece.end is not None and at >= piece.end:
            return
        first = max(piece.begin - at, 0)
        last = batch.num_rows if piece.end is None else min(piece.end - at, batch.num_rows)
        at += batch.num_rows
        if first < last:
            yield batch.slice(first, last - first)
