"""Parquet files that lie elsewhere: their pieces are row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hearth.files.core_input import CoreInput
from hearth.rows.far_input import (
    FarPiece,
    check_columns,
    checked,
    counted,
    open_part,
    open_uri,
    within,
)
from hearth.rows.file_parts import Part
from hearth.rows.group_input import GroupInput, ranges_of, start_of
from hearth.rows.rank_files import Count

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH_ROWS = 4096


class ParquetPieces:
    """As FarFormat."""

    counts_by_footers = True

    def types(self, uri: str) -> dict[str, str]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pa.PythonFile(CoreInput(open_uri(uri)), mode="r") as source:
            return {field.name: str(field.type) for field in pq.read_schema(source)}

    def pieces(self, part: Part, count: Count) -> list[FarPiece]:
        import pyarrow.parquet as pq

        with open_part(part, count) as source:
            return _groups_in(part, pq.ParquetFile(source).metadata)

    def counted_pieces(self, part: Part) -> list[FarPiece]:
        return self.pieces(part, lambda size, near: None)

    def read_piece(
        self, piece: FarPiece, columns: Sequence[str], count: Count
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        with open_part(piece.part, count) as source:
            file = pq.ParquetFile(source, metadata=piece.footer, pre_buffer=True)
            yield from _read_group(piece.part.uri, file, piece.number, columns)

    def read_part(
        self, part: Part, columns: Sequence[str], count: Count
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        ahead = GroupInput(checked(part))
        with counted(ahead, part, count) as source:
            file = pq.ParquetFile(source)
            groups = [piece.number for piece in _groups_in(part, file.metadata)]
            ranges = [ranges_of(file.metadata.row_group(group), columns) for group in groups]
            for number in ahead.each(ranges):
                yield from _read_group(part.uri, file, groups[number], columns)


def _read_group(
    uri: str, file: pq.ParquetFile, group: int, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """One by one, as pre_buffer would fetch all groups that are asked for."""
    check_columns(uri, file.schema_arrow.names, columns)
    for batch in file.iter_batches(_BATCH_ROWS, [group], list(columns) or None):
        yield batch.select(list(columns)) if columns else batch


def _groups_in(part: Part, metadata: pq.FileMetaData) -> list[FarPiece]:
    groups = [
        FarPiece(part, i, _start(metadata.row_group(i)), metadata.row_group(i).num_rows, metadata)
        for i in range(metadata.num_row_groups)
    ]
    return within(part, groups, "row group")


def _start(group: pq.RowGroupMetaData) -> int:
    """Where a row group's first byte lies."""
    return min((start_of(group.column(i)) for i in range(group.num_columns)), default=0)
