"""Column types that Spark's tasks and file readers can send to a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hearth.errors import InvalidArgumentError, invalid

if TYPE_CHECKING:
    import pyarrow as pa

CAST = (
    "cast it in Spark (a date or time to long, a decimal to double, a vector by vector_to_array, "
    "a struct to its fields), or drop it"
)


def check_carried(schema: Any) -> None:
    """Raises ValueError if a DataFrame has a column that cannot be sent to a node.

    Args:
        schema: a pyspark StructType.
    """
    for name, kind in uncarried(schema).items():
        raise invalid(f"column {name!r} has the type {kind}, which feeds do not support: {CAST}")


def uncarried(schema: Any) -> dict[str, str]:
    """The columns of a pyspark StructType that cannot be sent to a node, with their types."""
    fields = [field for field in schema.fields if not _is_carried(field.dataType)]
    return {field.name: field.dataType.simpleString() for field in fields}


def uncarried_arrow(schema: pa.Schema) -> dict[str, str]:
    """Like uncarried(), for an Arrow schema."""
    return {field.name: str(field.type) for field in schema if not _is_carried_arrow(field.type)}


def not_carried(dataset: str, name: str, kind: str) -> InvalidArgumentError:
    """Returns the error to raise for a dataset's column that cannot be sent to a node."""
    return invalid(
        f"column {name!r} of dataset {dataset!r} has the type {kind}, which datasets do not "
        f"support: name the columns to read in ctx.dataset(columns=), without it, or {CAST}"
    )


def _is_carried(kind: Any) -> bool:
    from pyspark.sql import types

    if isinstance(kind, types.UserDefinedType):
        kind = kind.sqlType()
    if isinstance(kind, types.ArrayType):
        return _is_carried(kind.elementType)
    if isinstance(kind, types.StructType):
        return all(_is_carried(field.dataType) for field in kind.fields)
    texts = (types.StringType, types.CharType, types.VarcharType, types.BinaryType)
    numbers = (types.BooleanType, types.IntegralType, types.FloatType, types.DoubleType)
    return isinstance(kind, (*texts, *numbers))


def _is_carried_arrow(kind: pa.DataType) -> bool:
    """Whether the core supports the type (hearth/batch/column_type.cc)."""
    from pyarrow import types

    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_carried_arrow(kind.value_type)
    if types.is_struct(kind):
        return all(_is_carried_arrow(field.type) for field in kind)
    numbers = (types.is_boolean, types.is_integer, types.is_float32, types.is_float64)
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    binary = (types.is_binary, types.is_large_binary, types.is_binary_view)
    return any(test(kind) for test in (*numbers, *texts, *binary))
