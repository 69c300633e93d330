"""Converts Arrow columns to dense arrays for models and functions, and arrays to other types.

A value that does not fit raises an error that names the column; no value silently becomes NaN,
infinity or another number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hearth.errors import invalid
from hearth.rows.columns import column_to_numpy, is_list

if TYPE_CHECKING:
    import pyarrow as pa


def dense_array(column: pa.Array, name: str) -> np.ndarray:
    """Converts the column `name` to an array [rows, ...].

    Raises:
        ValueError: the column has nulls, lists of different lengths, or an unsupported type.
    """
    if nulls := _nulls(column):
        raise invalid(
            f"the column {name!r} ({column.type}) has {_counted(nulls, 'null')} in a batch of "
            f"{_counted(len(column), 'row')}: fill the nulls (DataFrame.fillna) or drop their "
            "rows (DataFrame.dropna)"
        )
    return column_to_numpy(column, name)


def byte_rows(values: Any, name: str) -> np.ndarray:
    """Converts the column `name` of equally long bytes to uint8 [rows, length].

    Raises:
        ValueError: the values are not bytes, or have different lengths.
    """
    lengths = {len(v) if isinstance(v, bytes | bytearray | memoryview) else -1 for v in values}
    if -1 in lengths:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise invalid(
            f"column {name!r} has values of type {kinds}, which do not fit an array: use "
            "columns of numbers, arrays, vectors, or bytes of equal length (StringIndexer converts "
            "strings to numbers)"
        )
    if len(lengths) > 1:
        raise invalid(
            f"column {name!r} has bytes of different lengths ({sorted(lengths)[:4]}), which do not "
            "fit an array: decode or pad them in Spark"
        )
    # Copied, because bytes are read-only.
    return np.frombuffer(b"".join(values), np.uint8).reshape(len(values), -1).copy()


def fitted(values: np.ndarray, kind: Any, name: str) -> np.ndarray:
    """Converts the values of the column `name` to the type `kind`.

    The only permitted change of a number is rounding to the nearest floating-point value.

    Raises:
        ValueError: a value is out of range, or does not fit an integer or boolean.
    """
    kind = np.dtype(kind)
    if values.dtype == kind:
        return values
    if values.dtype.kind not in "biuf":
        raise invalid(f"the column {name!r} is not numeric, which {kind} requires: cast it")
    with np.errstate(all="ignore"):
        changed = values.astype(kind)
        lost = _lost(values, changed, kind)
    if lost.any():
        raise invalid(
            f"the column {name!r} has the value {values[lost][0]}, which does not fit {kind} "
            f"({np.count_nonzero(lost)} of {values.size} values of a batch): change the values, or "
            "the type"
        )
    return changed


def _lost(values: np.ndarray, changed: np.ndarray, kind: np.dtype) -> np.ndarray:
    """A mask of the values that do not fit `kind`."""
    if kind.kind == "b":
        return (values != 0) & (values != 1)
    if kind.kind not in "iu":
        return np.isfinite(values) & ~np.isfinite(changed)
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    if values.dtype.kind != "f":
        return (values < least) | (values > most)
    # Compares with `least` and `most + 1`, because both are exact as floats.
    inside = (values >= float(least)) & (values < float(most + 1))
    return ~(inside & (values == np.trunc(values)))


def _nulls(column: pa.Array) -> int:
    """The number of nulls in a column and in its lists."""
    nulls = column.null_count
    return nulls + (_nulls(column.flatten()) if is_list(column.type) else 0)


def value_type(kind: pa.DataType) -> pa.DataType:
    """The innermost type of nested lists; `kind` itself if it is not a list."""
    while is_list(kind):
        kind = kind.value_type
    return kind


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
