"""ORC files that lie elsewhere: their pieces are stripes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hearth.files.core_input import CoreInput
from hearth.rows.far_input import FarPiece, check_columns, open_part, open_uri, within
from hearth.rows.file_parts import Part
from hearth.rows.rank_files import Count
from hearth.sources.orc import stripes_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import orc

_BATCH_ROWS = 4096


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
    stripes = stripes_of(file)
    if len(stripes) != file.nstripes:
        raise ValueError(f"{part.uri} is damaged: its footer has {len(stripes)} stripes")
    pieces = [FarPiece(part, i, start, rows) for i, (start, _, rows) in enumerate(stripes)]
    return within(part, pieces, "stripe")
