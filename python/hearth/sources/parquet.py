"""Parquet files: their units are row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile
from hearth.sources.format import Unit, batch_rows, check_starts

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_OPEN_FOOTERS = 64


class ParquetFormat:
    """As Format. Columns may stand in the names of folders."""

    kind = "Parquet"
    in_folders = True
    one_database = False

    def data_files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        return list(files)

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        return _footer(files[0]).schema.to_arrow_schema()

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        footer = _footer(file)
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        # Their sizes as stored are in the columns' metadata, of which there may be thousands.
        total = max(1, sum(group.total_byte_size for group in groups))
        units = [
            Unit(i, _start(group), file.size * group.total_byte_size // total, group.num_rows)
            for i, group in enumerate(groups)
        ]
        return check_starts(file.uri, file.size, units, "row group")

    def open(self, file: StoredFile, schema: pa.Schema) -> _Reader:
        return _Reader(file, schema)


class _Reader:
    """Memory: the row group's columns as stored, and a decoded batch."""

    def __init__(self, file: StoredFile, schema: pa.Schema):
        import pyarrow.parquet as pq

        self._names = schema.names
        footer = _footer(file)
        known = footer.schema.to_arrow_schema().names
        for name in self._names:
            if name not in known:
                had = ", ".join(known)
                raise ValueError(f"column '{name}' is not in {file.uri}, which has: {had}")
        source = InputFile(file).for_arrow()
        self._file = pq.ParquetFile(source, metadata=footer, pre_buffer=True)

    def read(self, key: int) -> Iterator[pa.RecordBatch]:
        group = self._file.metadata.row_group(key)
        rows = batch_rows(group.total_byte_size, group.num_rows)
        if self._names:
            return self._file.iter_batches(rows, [key], self._names)
        return _without_columns(group.num_rows, rows)


def _without_columns(total: int, rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of so many rows and no column: where all that are wanted stand in folder names."""
    import pyarrow as pa

    for at in range(0, total, rows):
        count = min(rows, total - at)
        yield pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


@lru_cache(_OPEN_FOOTERS)  # splits of one file follow each other
def _footer(file: StoredFile) -> pq.FileMetaData:
    import pyarrow.parquet as pq

    with InputFile(file).for_arrow() as source:
        return pq.read_metadata(source)


def _start(group: pq.RowGroupMetaData) -> int:
    """The first byte of the group's first column; of a group without columns, the magic number's
    end."""
    if group.num_columns == 0:
        return 4
    column = group.column(0)
    if column.has_dictionary_page and column.dictionary_page_offset:
        return min(column.dictionary_page_offset, column.data_page_offset)
    return column.data_page_offset
