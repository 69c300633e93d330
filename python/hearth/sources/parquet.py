"""Parquet files. Their units (format.Unit) are row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hearth.files.input_files import InputFile, arrow_file
from hearth.files.stored_files import StoredFile
from hearth.sources.format import Format, Read, Unit, batch_rows, check_columns, check_starts
from hearth.sources.read_ahead import Range, ReadAhead

_OPEN_FOOTERS = 64


class ParquetFormat(Format):
    """Parquet files. Folder names may contain columns."""

    kind = "Parquet"
    in_folders = True

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        return footer_of(files[0]).schema.to_arrow_schema()

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        footer = footer_of(file)
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        # Estimate stored sizes by proportion: exact ones are in the metadata of each column, and
        # there may be thousands of columns.
        total = max(1, sum(group.total_byte_size for group in groups))
        units = [
            Unit(i, _start(group), file.size * group.total_byte_size // total, group.num_rows)
            for i, group in enumerate(groups)
        ]
        return check_starts(file.uri, file.size, units, "row group")

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Read:
        return GroupReader(file, schema.names, keys).read


class GroupReader:
    """Reads row groups. Memory: a decoded batch and a group's stored columns; for a remote file,
    also the next group's.
    """

    def __init__(self, file: InputFile, names: Sequence[str], keys: Sequence[int], **options: Any):
        """`names`: the columns to read. `options`: options of pyarrow's ParquetFile."""
        self._names = list(names)
        self._ahead: ReadAhead | None = None
        footer = footer_of(file.stored)
        check_columns(file.uri, footer.schema.to_arrow_schema().names, self._names)
        if file.path is None:
            units = {key: _ranges(footer.row_group(key), self._names) for key in keys}
            self._ahead = ReadAhead(file, units)
        source = file.for_arrow() if self._ahead is None else arrow_file(self._ahead)
        options["pre_buffer"] = self._ahead is None
        self._file = pq.ParquetFile(source, metadata=footer, **options)

    def read(self, key: int) -> Iterator[pa.RecordBatch]:
        """Reads row group `key` in batches."""
        group = self._file.metadata.row_group(key)
        rows = batch_rows(group.total_byte_size, group.num_rows)
        if not self._names:
            return _without_columns(group.num_rows, rows)
        if self._ahead is not None:
            self._ahead.begin(key)
        return self._file.iter_batches(rows, [key], self._names)


def _without_columns(total: int, rows: int) -> Iterator[pa.RecordBatch]:
    """Batches without columns, for when all selected columns come from folder names."""
    for at in range(0, total, rows):
        count = min(rows, total - at)
        yield pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


@lru_cache(_OPEN_FOOTERS)  # few: a file's splits are consecutive
def footer_of(file: StoredFile) -> pq.FileMetaData:
    """The file's footer, which describes its row groups."""
    with InputFile(file).for_arrow() as source:
        return pq.read_metadata(source)


def _start(group: pq.RowGroupMetaData) -> int:
    """The offset of the group's first column; without columns, the end of the magic number."""
    return _chunk_start(group.column(0)) if group.num_columns else 4


def _ranges(group: pq.RowGroupMetaData, names: Sequence[str]) -> list[Range]:
    """The byte ranges of the named columns in a group."""
    chunks = (group.column(i) for i in range(group.num_columns))
    chosen = [chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in names]
    return [(_chunk_start(one), _chunk_start(one) + one.total_compressed_size) for one in chosen]


def _chunk_start(chunk: pq.ColumnChunkMetaData) -> int:
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        return min(chunk.dictionary_page_offset, chunk.data_page_offset)
    return chunk.data_page_offset
