"""Maps Spark types to the three feature kinds of a tf.train.Example, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hearth.errors import invalid

_KINDS = {
    "float": "float",
    "double": "float",
    "boolean": "int64",
    "tinyint": "int64",
    "smallint": "int64",
    "int": "int64",
    "bigint": "int64",
    "long": "int64",
    "binary": "bytes",
    "string": "bytes",
}

_MOST_VALUES = 2**31 - 1  # limit for one batch of an array column


def feature_kind(kind: Any) -> str:
    """The feature kind ("float", "int64", "bytes") of a Spark type, or of an array's elements.

    Raises:
        ValueError: an example cannot contain the type.
    """
    name = kind if isinstance(kind, str) else kind.simpleString()
    inner = name[len("array<") : -1] if name.startswith("array<") else name
    if inner not in _KINDS:
        raise invalid(
            f"Unsupported dtype: {name}; a tf.train.Example holds numbers, booleans, strings, "
            "binaries and arrays of them"
        )
    return _KINDS[inner]


def check_types(schema: Any, round_doubles: bool = False) -> None:
    """Raises ValueError if an example cannot contain a column, whose name is in the message."""
    names = [field.name for field in schema.fields]
    if not names:
        raise invalid("the DataFrame has no columns, so examples would be empty")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise invalid(
            f"several columns are called '{twice[0]}', but an example holds one feature of a name: "
            "rename them by DataFrame.toDF"
        )
    for field in schema.fields:
        try:
            feature_kind(field.dataType)
        except ValueError as error:
            raise invalid(f"column '{field.name}': {error}") from error
        if "double" in field.dataType.simpleString() and not round_doubles:
            raise invalid(
                f"column '{field.name}' ({field.dataType.simpleString()}): a tf.train.Example "
                "holds floats of 32 bits, which would change the values: cast the column to float, "
                "or call saveAsTFRecords(..., round_doubles=True)"
            )


def inferred_type(name: str, kind: str, many: bool, binary_features: Sequence[str]) -> Any:
    """The Spark type for a feature of which only the kind is known."""
    from pyspark.sql import types

    scalar = {
        "int64": types.LongType(),
        "float": types.DoubleType(),
        "bytes": types.BinaryType() if name in binary_features else types.StringType(),
    }[kind]
    return types.ArrayType(scalar) if many else scalar


def infer_fields(
    examples: Iterable[Sequence[tuple[str, str, int]]], binary_features: Sequence[str]
) -> Any:
    """Infers the StructType of examples, each a list of (name, kind, number of values).

    A feature becomes an array if any example has several values of it.
    """
    from pyspark.sql.types import StructField, StructType

    kinds: dict[str, str] = {}
    many: dict[str, bool] = {}
    for example in examples:
        for name, kind, count in example:
            kinds[name] = kinds.get(name) or kind
            many[name] = many.get(name, False) or count > 1
    return StructType(
        [
            StructField(
                name, inferred_type(name, kinds[name] or "bytes", many[name], binary_features)
            )
            for name in sorted(kinds)
        ]
    )


def arrow_columns(schema: Any, rows: int, columns: Mapping[str, Mapping[str, Any]]) -> Any:
    """Converts TfRecordReader.read()'s output to a pyarrow.RecordBatch with `schema`'s types."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return arrow_batch(to_arrow_schema(schema), rows, columns)


def arrow_kind(kind: Any) -> str:
    """Like feature_kind(), for the Arrow type of a Spark type."""
    inner = kind.value_type if pa.types.is_list(kind) else kind
    if pa.types.is_floating(inner):
        return "float"
    return "int64" if pa.types.is_integer(inner) or pa.types.is_boolean(inner) else "bytes"


def arrow_batch(schema: Any, rows: int, columns: Mapping[str, Mapping[str, Any]]) -> Any:
    """Like arrow_columns(), with a pyarrow.Schema."""
    arrays = [_column(field.name, field.type, rows, columns[field.name]) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)


def _column(name: str, kind: Any, rows: int, parts: Mapping[str, Any]) -> Any:
    values = _values(parts)
    if parts["row_offsets"][-1] > _MOST_VALUES:
        raise invalid(
            f"feature '{name}' has {parts['row_offsets'][-1]} values in {rows} examples: a column "
            f"of arrays holds at most {_MOST_VALUES}; split the examples into smaller ones"
        )
    ends = parts["row_offsets"].astype(np.int32)
    missing = parts["present"] == 0
    if pa.types.is_list(kind):
        offsets = (
            pa.array(ends, mask=np.append(missing, False)) if missing.any() else pa.array(ends)
        )
        return pa.ListArray.from_arrays(offsets, _cast(values, kind.value_type))
    counts = np.diff(ends)
    if (counts > 1).any():
        raise invalid(
            f"feature '{name}' has {counts.max()} values in one example, but its column is not an "
            "array: the examples from which the schema was inferred had one value each"
        )
    scalars = _cast(values, kind)
    if len(scalars) == rows:
        return scalars
    # An example without a value yields null.
    last = pa.array(np.maximum(np.cumsum(counts) - 1, 0), mask=counts == 0)
    return scalars.take(last) if len(scalars) else pa.nulls(rows, kind)


def _cast(values: Any, kind: Any) -> Any:
    """Like pyarrow's cast(), but does not copy if the type is already `kind`."""
    return values if values.type == kind else values.cast(kind)


def _values(parts: Mapping[str, Any]) -> Any:
    if "value_offsets" not in parts:
        return pa.array(parts["values"])
    offsets = parts["value_offsets"]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(parts["values"])]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
