"""Converts a model's outputs, numbers or strings of any shape [rows, ...], to columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hearth.errors import invalid
from hearth.rows.dense_arrays import fitted, value_type

if TYPE_CHECKING:
    import pyarrow as pa

_SCALARS = {
    "float16": "float",
    "bfloat16": "float",
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "bigint",
    **dict.fromkeys(("int8", "int16", "uint8", "uint16", "uint32", "uint64"), "bigint"),
    "bool": "boolean",
    "string": "string",
}


def spark_type(kind: str, depth: int) -> str:
    """A column's type: a scalar for one value per row, otherwise nested arrays.

    `kind`: NumPy's name of the values' type; `depth`: the number of dimensions of a row's value.

    Raises:
        ValueError: the type is unsupported, such as complex numbers.
    """
    scalar = _SCALARS.get(kind)
    if scalar is None:
        raise invalid(
            f"values of type {kind} are not supported in columns: convert them to numbers of at "
            "most 64 bits, booleans or strings"
        )
    return "array<" * depth + scalar + ">" * depth


def arrow_type(kind: str, depth: int) -> pa.DataType:
    """The Arrow type that corresponds to spark_type(). Raises like spark_type()."""
    import pyarrow as pa

    names = {"float": "float32", "double": "float64", "int": "int32", "bigint": "int64"}
    scalar = spark_type(kind, 0)
    found = pa.type_for_alias(names.get(scalar, scalar))
    for _ in range(depth):
        found = pa.list_(found)
    return found


def to_arrow(values: np.ndarray) -> pa.Array:
    """Converts numbers or bytes of any shape to spark_type()'s type. Raises like spark_type()."""
    import pyarrow as pa

    flat = values.reshape(-1)
    if values.dtype == object:
        column = pa.array([text.decode() for text in flat], pa.string())
    elif spark_type(values.dtype.name, 0) == "bigint":
        if values.dtype == np.uint64 and flat.size and flat.max() > np.iinfo(np.int64).max:
            raise invalid(f"the value {flat.max()} is too large for a column of bigint")
        column = pa.array(flat.astype(np.int64, copy=False))
    else:
        small = values.dtype.itemsize == 2
        column = pa.array(flat.astype(np.float32) if small else flat)
    for depth in range(values.ndim - 1, 0, -1):
        count = math.prod(values.shape[:depth])
        offsets = np.arange(count + 1, dtype=np.int64) * values.shape[depth]
        column = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), column)
    return column


def as_array(value: Any) -> np.ndarray:
    """Converts a result, such as a PyTorch tensor on any device, to an array."""
    if type(value).__module__.partition(".")[0] == "torch":
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
    return np.asarray(value)


def as_column(values: np.ndarray, field: pa.Field) -> pa.Array:
    """Converts the values to Spark's type. Raises ValueError if they do not fit."""
    import pyarrow as pa

    if values.ndim == 0:
        raise invalid(
            f"the function returned a single value for the column {field.name!r}: its first "
            "dimension must be the rows (use reduce_blocks for a single result)"
        )
    if values.dtype.kind == "f" and pa.types.is_floating(kind := value_type(field.type)):
        values = fitted(values, kind.to_pandas_dtype(), field.name)
    texts = values.dtype.kind in "OU"
    column = pa.array(values.tolist()) if texts else to_arrow(values)
    try:
        return column if column.type == field.type else column.cast(field.type)
    except pa.ArrowNotImplementedError as error:
        found = spark_type("string" if texts else values.dtype.name, values.ndim - 1)
        raise invalid(
            f"the column {field.name!r} is declared as {field.type}, but its values are {found} "
            f"(each of shape {values.shape[1:]}): declare it as {found}, or return other values"
        ) from error
    except pa.ArrowInvalid as error:
        raise invalid(
            f"the column {field.name!r} of {len(column)} rows does not fit {field.type}: {error}"
        ) from error
