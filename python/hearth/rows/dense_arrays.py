"""Arrow columns as the arrays that a model or function takes, and arrays in another type.

A value that the result cannot hold is an error that names the column: nothing becomes NaN,
infinity or another number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hearth.rows.columns import column_to_numpy, is_list

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def dense_array(column: pa.Array, name: str) -> np.ndarray:
    """The values of the column `name`, shape [rows, ...].

    Raises:
        ValueError: nulls, lists of different lengths, or a type that no array has.
    """
    if nulls := _nulls(column):
        raise ValueError(
            f"the column {name!r} ({column.type}) has {_counted(nulls, 'null')} in a batch of "
            f"{_counted(len(column), 'row')}: fill the nulls (DataFrame.fillna) or drop their "
            "rows (DataFrame.dropna)"
        )
    return column_to_numpy(column, name)


def byte_rows(values: Any, name: str) -> np.ndarray:
    """Bytes of one length in the column `name` as uint8 [rows, length].

    Raises:
        ValueError: the values are something else, or of several lengths.
    """
    import numpy as np

    lengths = {len(v) if isinstance(v, bytes | bytearray | memoryview) else -1 for v in values}
    if -1 in lengths:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise ValueError(
            f"column {name!r} has values of type {kinds}, which make no array of one shape: take "
            "columns of numbers, arrays, vectors, or bytes of one length (StringIndexer makes "
            "numbers of strings)"
        )
    if len(lengths) > 1:
        raise ValueError(
            f"column {name!r} has bytes of different lengths ({sorted(lengths)[:4]}), which make "
            "no array: decode or pad them in Spark"
        )
    # A copy, as bytes cannot be written to.
    return np.frombuffer(b"".join(values), np.uint8).reshape(len(values), -1).copy()


def fitted(values: np.ndarray, kind: Any, name: str) -> np.ndarray:
    """The values of the column `name` in the type `kind`.

    Numbers may be rounded to the nearest one of a type of floating point, no more.

    Raises:
        ValueError: a value is out of range, or an integer or boolean cannot hold it.
    """
    import numpy as np

    kind = np.dtype(kind)
    if values.dtype == kind:
        return values
    if values.dtype.kind not in "biuf":
        raise ValueError(f"the column {name!r} holds no numbers, which {kind} needs: cast it")
    with np.errstate(all="ignore"):
        changed = values.astype(kind)
        lost = _lost(values, changed, kind)
    if lost.any():
        raise ValueError(
            f"the column {name!r} has the value {values[lost][0]}, which {kind} cannot hold "
            f"({np.count_nonzero(lost)} of {values.size} values of a batch): change the values, or "
            "the type"
        )
    return changed


def _lost(values: np.ndarray, changed: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Where a value is out of range."""
    import numpy as np

    if kind.kind == "b":
        return (values != 0) & (values != 1)
    if kind.kind not in "iu":
        return np.isfinite(values) & ~np.isfinite(changed)
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    if values.dtype.kind != "f":
        return (values < least) | (values > most)
    # As floats the bounds are exact: least, and most + 1.
    inside = (values >= float(least)) & (values < float(most + 1))
    return ~(inside & (values == np.trunc(values)))


def _nulls(column: pa.Array) -> int:
    """Nulls of a column, and in its lists."""
    nulls = column.null_count
    return nulls + (_nulls(column.flatten()) if is_list(column.type) else 0)


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values in lists, in lists of lists too; `kind` itself where it is no list."""
    while is_list(kind):
        kind = kind.value_type
    return kind


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
