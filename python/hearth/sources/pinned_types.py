"""Casts a file's columns to the types of the source's schema, which may come from another file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hearth.errors import invalid


def in_type(column: pa.Array, field: pa.Field) -> pa.Array:
    """Casts the column to the field's type. Floats may be rounded; other values never change.

    Raises:
        ValueError: the types are of different kinds, or a value is out of range.
    """
    if column.type == field.type:
        return column
    kind, wanted = _kind_of(column.type), _kind_of(field.type)
    if kind != wanted and not pa.types.is_null(column.type):
        raise invalid(
            f"the column {field.name!r} is {column.type}, but {field.type} in the source's schema: "
            "write all files with one type, or read them with Spark"
        )
    try:
        found = column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise invalid(f"the column {field.name!r}: {error}") from error
    if _infinities(found) != _infinities(column):
        raise invalid(
            f"the column {field.name!r} has values of type {column.type} that do not fit its type "
            f"in the source's schema, {field.type}"
        )
    return found


def _kind_of(kind: pa.DataType) -> str:
    """The kind of a type. Casts between types of the same kind preserve the meaning."""
    types = pa.types
    if types.is_dictionary(kind):
        return _kind_of(kind.value_type)
    if isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        return f"list of {_kind_of(kind.value_type)}"
    if types.is_struct(kind):
        return "struct of " + ", ".join(f"{field.name} {_kind_of(field.type)}" for field in kind)
    if types.is_map(kind):
        return f"map of {_kind_of(kind.key_type)} to {_kind_of(kind.item_type)}"
    if types.is_integer(kind) or types.is_floating(kind):
        return "number"
    for name in ("string", "binary", "date", "timestamp", "time", "duration", "decimal"):
        if str(kind).startswith((name, f"large_{name}", f"fixed_size_{name}")):
            return "text" if name in ("string", "binary") else name
    return str(kind)


def _infinities(column: pa.Array) -> int:
    values = column
    while isinstance(values.type, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        values = values.flatten()
    return (pc.sum(pc.is_inf(values)).as_py() or 0) if pa.types.is_floating(values.type) else 0
