"""Parquet files of a table version: matches columns by the table's schema, omits deleted rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hearth.errors import invalid
from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile
from hearth.sources.format import Format, Read, Unit
from hearth.sources.parquet import GroupReader, ParquetFormat, footer_of
from hearth.sources.tables.columns import Column
from hearth.sources.tables.data_files import DataFile

# The key of a unit that is a whole file.
_WHOLE = -1


@dataclass(frozen=True)
class TableFormat(Format):
    """Parquet files of a table version, as DataFiles. `kind`: version and table, for messages."""

    kind: str
    columns: tuple[Column, ...]

    in_folders = False
    one_database = False
    views = False

    def data_files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        return list(files)

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        return pa.schema([(column.name, column.type) for column in self.columns])

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        """Row groups; but a file of at most `share` bytes is one unit, and is not opened."""
        assert isinstance(file, DataFile)
        deleted = file.deleted_rows()
        if file.rows is not None and file.size <= share:
            return [Unit(_WHOLE, 0, file.size, file.rows - _count(deleted, file.rows))]
        groups = ParquetFormat().units(file, share)
        ends = list(itertools.accumulate(group.rows or 0 for group in groups))
        rows = ends[-1] if ends else 0
        if file.rows not in (None, rows):
            raise invalid(f"the file has {rows} rows, but the table's log says {file.rows}")
        _count(deleted, rows)
        counts = np.diff(np.searchsorted(deleted, [0, *ends])).tolist()
        return [
            replace(group, rows=(group.rows or 0) - count)
            for group, count in zip(groups, counts, strict=True)
        ]

    def joined(self, key: Any, following: Any) -> Any:
        return None

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Read:
        by_name = {column.name: column for column in self.columns}
        return _Reader(file, [by_name[name] for name in schema.names], keys).read


def _count(deleted: np.ndarray, rows: int) -> int:
    """The number of deleted rows; raises ValueError if one of them is not in the file."""
    if len(deleted) and deleted[-1] >= rows:
        raise invalid(f"the table's log deletes row {deleted[-1]}, but the file has {rows} rows")
    return len(deleted)


class _Reader:
    """Reads units. Memory: see GroupReader."""

    def __init__(self, file: InputFile, columns: Sequence[Column], keys: Sequence[int]):
        assert isinstance(file.stored, DataFile)
        self._deleted = file.stored.deleted_rows()
        self._columns = columns
        self._values = dict(file.stored.values)
        footer = footer_of(file.stored)
        fields = list(footer.schema.to_arrow_schema())
        counts = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
        self._begins = list(itertools.accumulate(counts, initial=0))
        self._names: dict[str, str] = {}  # name in the file by name in the table
        for column in columns:
            at = None if column.name in self._values else column.index(fields)
            if at is not None:
                self._names[column.name] = fields[at].name
        groups = dict.fromkeys(group for key in keys for group in self._groups(key))
        # Microseconds, because not all dates of Spark's 96-bit timestamps fit in nanoseconds.
        options = {"coerce_int96_timestamp_unit": "us"}
        self._file = GroupReader(file, list(self._names.values()), list(groups), **options)

    def _groups(self, key: int) -> Sequence[int]:
        return range(len(self._begins) - 1) if key == _WHOLE else [key]

    def read(self, key: int) -> Iterator[pa.RecordBatch]:
        for group in self._groups(key):
            at = self._begins[group]
            for batch in self._file.read(group):
                kept = self._without_deleted(batch, at)
                at += batch.num_rows
                yield self._as_table(kept)

    def _without_deleted(self, batch: pa.RecordBatch, at: int) -> pa.RecordBatch:
        """Removes deleted rows from a batch that begins at row `at` of the file."""
        low, high = np.searchsorted(self._deleted, (at, at + batch.num_rows))
        if low == high:
            return batch
        kept = np.ones(batch.num_rows, bool)
        kept[self._deleted[low:high] - at] = False
        if not batch.num_columns:
            return batch.slice(0, int(kept.sum()))
        return batch.filter(pa.array(kept))

    def _as_table(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows, arrays = batch.num_rows, []
        for column in self._columns:
            if column.name in self._names:
                arrays.append(column.of(batch.column(self._names[column.name])))
            elif column.name in self._values:
                arrays.append(replace(column, default=self._values[column.name]).missing(rows))
            else:
                arrays.append(column.missing(rows))
        names = [column.name for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, names)
