"""Parquet and ORC files of a table whose columns and partition values the catalog defines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hearth.errors import invalid
from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile
from hearth.sources.format import Format, Read, Unit
from hearth.sources.orc import OrcFormat
from hearth.sources.parquet import GroupReader, ParquetFormat
from hearth.sources.tables.columns import Column, has_struct, plain

# Partition columns, and their values as text in Hive's format.
Values = tuple[tuple[str, str | None], ...]
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class PartitionFile(StoredFile):
    """A file of a table. `values`: the partition columns' values."""

    values: Values = ()

    def identity(self) -> tuple[Any, ...]:
        """Identifies the file, with the values of its partition columns."""
        return *super().identity(), json.dumps(self.values)


@dataclass(frozen=True)
class CatalogFormat(Format):
    """Files of a table in Spark's catalog, as PartitionFiles.

    `kind`: names the table in messages. `files`: "parquet" or "orc". `keys`: those of `columns`
    that are partition columns. `defaults`: columns for which Spark uses a default value in files
    without them.
    """

    kind: str
    files: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...]
    defaults: tuple[str, ...] = ()

    in_folders = False
    one_database = False
    views = False

    def data_files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        return [file for file in files if file.size]

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        return pa.schema([(column.name, column.type) for column in self.columns])

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        return self._inner.units(file, share)

    def joined(self, key: Any, following: Any) -> Any:
        return self._inner.joined(key, following)

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Read:
        fields = list(self._inner.schema([file.stored]))
        by_name = {column.name: column for column in self.columns}
        found = {
            column.name: fields[at]
            for column in self.columns
            if column.name not in self.keys and (at := _index(column, fields)) is not None
        }
        if not found and fields and len(self.keys) < len(self.columns):
            known = ", ".join(each.name for each in fields[:9])
            raise invalid(f"the file has no column of the table; it has {known}")
        lacking = set(schema.names) & set(self.defaults) - {*found, *self.keys}
        if lacking:
            raise invalid(
                f"the file lacks column {min(lacking)!r}, to which Spark gives a default value: "
                "pass the DataFrame spark.table(...)"
            )
        assert isinstance(file.stored, PartitionFile)
        values = dict(file.stored.values)
        columns = [_with_value(by_name[name], values, self.keys) for name in schema.names]
        inside = {column.name: found[column.name] for column in columns if column.name in found}
        # Reads at least one column, because an ORC file reports no rows if no column is selected.
        wanted = pa.schema(list((inside or dict(list(found.items())[:1])).values()))
        names = {name: field.name for name, field in inside.items()}
        read_file = self._inner.open(file, wanted, keys)

        def read(key: Any) -> Iterator[pa.RecordBatch]:
            for batch in read_file(key):
                arrays = [
                    column.of(batch.column(names[column.name]))
                    if column.name in names
                    else column.missing(batch.num_rows)
                    for column in columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, [column.name for column in columns])

        return read

    @property
    def _inner(self) -> Format:
        return _Parquet() if self.files == "parquet" else OrcFormat()


class _Parquet(ParquetFormat):
    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Read:
        # Microseconds, because not all dates of 96-bit timestamps fit in 64-bit nanoseconds.
        return GroupReader(file, schema.names, keys, coerce_int96_timestamp_unit="us").read


def table_column(field: pa.Field, files: str) -> Column:
    """Converts a catalog field to a column of a table of Parquet or ORC files.

    Raises ValueError if the type is not supported.
    """
    try:
        if files == "orc" and "tz=" in str(field.type):
            raise invalid("timestamps of ORC files depend on the zone of their writer")
        return _column(field.name, plain(field.type))
    except ValueError as error:
        raise invalid(f"column '{field.name}': {error}; read the table with Spark") from error


def _column(name: str, kind: pa.DataType) -> Column:
    children: tuple[Column, ...] = ()
    if pa.types.is_struct(kind):
        children = tuple(_column(part.name, part.type) for part in kind)
    elif has_struct(kind):
        children = (_column("element", kind.value_type),)
    return Column(name, kind, names=(name, name.lower()), children=children)


def _index(column: Column, fields: Sequence[pa.Field]) -> int | None:
    """A column's index in a file, where names may differ in case, like Hive's."""
    exact = column.index(fields)
    if exact is not None:
        return exact
    lower = [field.name.lower() for field in fields]
    name = column.name.lower()
    return lower.index(name) if name in lower else None


def _with_value(column: Column, values: dict[str, str | None], keys: Sequence[str]) -> Column:
    """Makes a partition column a constant; returns other columns unchanged."""
    text = values.get(column.name)
    if column.name not in keys or text is None or text == _NULL:
        return column
    try:
        return replace(column, default=pa.scalar(text).cast(column.type).as_py())
    except pa.ArrowException as error:
        raise invalid(
            f"its partition has {column.name}={text}, which is not a {column.type}: {error}; let "
            "Spark read the table"
        ) from error
