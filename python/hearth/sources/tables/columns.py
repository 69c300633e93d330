"""Columns of a table, and their conversion from a data file's fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hearth.errors import invalid

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class Column:
    """A column of a table, or a field of a struct.

    `name`, `type`: the name and type in batches. `id`: identifies the column in files whose fields
    have ids; None: it is matched by name. `names`: possible names in other files. `children`: the
    fields of a struct, or the element of a list of structs. `default`: the value in files without
    the column.
    """

    name: str
    type: pa.DataType
    id: int | None = None
    names: tuple[str, ...] = ()
    children: tuple[Column, ...] = ()
    default: Any = None

    def index(self, fields: Sequence[pa.Field]) -> int | None:
        """The column's index in the fields of a file or of a struct; None if it is missing.

        Raises ValueError if the fields have no ids and the table has no names for such files.
        """
        ids = [_id(field) for field in fields]
        if self.id is not None and any(found is not None for found in ids):
            return ids.index(self.id) if self.id in ids else None
        if not self.names:
            raise invalid(
                "the file has no field ids, and the table has no name mapping for column "
                f"'{self.name}'"
            )
        names = [field.name for field in fields]
        return next((names.index(name) for name in self.names if name in names), None)

    def missing(self, rows: int) -> pa.Array:
        """The column's values in a file without the column."""
        if self.default is None:
            return pa.nulls(rows, self.type)
        return pa.repeat(pa.scalar(self.default, self.type), rows)

    def of(self, array: pa.Array) -> pa.Array:
        """Converts a file's field to the column. Raises ArrowException for incompatible types."""
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if self.children and pa.types.is_list(self.type):
            array = array.take(pa.array(range(len(array)), pa.int64()))  # makes offsets start at 0
            values = self.children[0].of(array.values)
            return pa.ListArray.from_arrays(array.offsets, values, self.type, mask=array.is_null())
        if not self.children:
            return array if array.type == self.type else array.cast(self.type)
        fields, parts = list(array.type), array.flatten()
        found = [(child, child.index(fields)) for child in self.children]
        arrays = [
            child.missing(len(array)) if at is None else child.of(parts[at]) for child, at in found
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(self.type), mask=array.is_null())


def _id(field: pa.Field) -> int | None:
    """A field's id in a Parquet file."""
    found = (field.metadata or {}).get(_FIELD_ID)
    return None if found is None else int(found)


def plain(kind: pa.DataType) -> pa.DataType:
    """Reduces a type to 32-bit offsets without metadata, as file readers return it.

    Raises ValueError for a map with structs, because their fields cannot be matched.
    """
    types = pa.types
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(plain(kind.value_type))
    if types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain(field.type)) for field in kind])
    if types.is_map(kind):
        if has_struct(kind.key_type) or has_struct(kind.item_type):
            raise invalid("maps with structs are not supported")
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    return kind


def has_struct(kind: pa.DataType) -> bool:
    """Whether the type contains structs."""
    types = pa.types
    if types.is_map(kind):
        return has_struct(kind.key_type) or has_struct(kind.item_type)
    if types.is_list(kind) or types.is_large_list(kind):
        return has_struct(kind.value_type)
    return bool(types.is_struct(kind))
