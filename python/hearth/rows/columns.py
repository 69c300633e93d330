"""Converts Arrow batches to minibatches of arrays (types: docs/cluster.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hearth.errors import invalid
from hearth.rows.carried_types import CAST

if TYPE_CHECKING:
    import pyarrow as pa


class Columns:
    """A range of rows of a record batch. Not thread-safe."""

    __slots__ = ("_arrays", "_batch", "_start", "_stop")

    def __init__(self, batch: pa.RecordBatch):
        self._batch = batch
        # Arrays of the whole batch, by (column name, ragged), which slices share.
        self._arrays: dict[tuple[str, bool], np.ndarray] = {}
        self._start, self._stop = 0, batch.num_rows

    def __len__(self) -> int:
        return self._stop - self._start

    def slice(self, at: int, count: int) -> Columns:
        """Up to `count` rows from `at` on, without copying."""
        part = Columns.__new__(Columns)
        part._batch, part._arrays = self._batch, self._arrays
        part._start = self._start + at
        part._stop = min(part._start + count, self._stop)
        return part

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return self._batch.schema.names

    def like(self, other: Any) -> bool:
        """Whether `other` has the same columns, so that both fit into one minibatch."""
        return isinstance(other, Columns) and self._batch.schema.equals(other._batch.schema)

    def array(self, name: str, ragged: bool = False) -> np.ndarray:
        """Like column_to_numpy(), but with `ragged`, lists become one array per row.

        The array is writable and may share the batch's memory.
        """
        whole = self._arrays.get((name, ragged))
        if whole is None:
            column = _column_of(self._batch, name)
            if ragged and is_list(column.type):
                whole = _ragged_arrays(column, name)
            else:
                whole = self._own(column_to_numpy(column, name))
            self._arrays[name, ragged] = whole
        return whole[self._start : self._stop]

    def _own(self, array: np.ndarray) -> np.ndarray:
        """A writable view of the array. (pyarrow marks arrays that share memory as read-only.)"""
        if any(np.may_share_memory(array, other) for other in self._arrays.values()):
            return array.copy()  # the column was also read under another name
        return array if array.flags.writeable else np.asarray(_Writable(array))

    def rows(self, names: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
        """The rows as Python objects, of all columns or of `names`.

        Raises:
            ValueError: a column is unknown.
        """
        part = self._batch.slice(self._start, len(self))
        columns = part.columns if names is None else [_column_of(part, name) for name in names]
        return list(zip(*(column.to_pylist() for column in columns), strict=True))


class ColumnsBefore:
    """The columns of a feed's earlier rows, which later rows must match."""

    def __init__(self) -> None:
        self._names: list[str] | None = None
        self._shapes: dict[tuple[str, np.dtype, int], tuple[int, ...]] = {}

    def check_names(self, chunks: list[Any]) -> None:
        """Raises ValueError if the rows' fields differ from those of earlier rows."""
        if not chunks or not isinstance(chunks[0], Columns):
            return
        names = chunks[0].names
        self._names = self._names or names
        if names != self._names:
            raise invalid(
                f"the rows have the columns {', '.join(names)}, but earlier rows had "
                f"{', '.join(self._names)}, so the fields of their tuples differ: select the same "
                "columns in the same order, or use next_numpy(), which names them"
            )

    def check_shapes(self, name: str, arrays: list[np.ndarray]) -> None:
        """Raises ValueError if the lists' length has changed: one minibatch cannot have both
        lengths."""
        for array in arrays:
            shape = array.shape[1:]
            before = self._shapes.setdefault((name, array.dtype, array.ndim), shape)
            if shape != before:
                lengths = ({*pair} for pair in zip(shape, before, strict=True))
                raise invalid(_other_lengths(name, next(n for n in lengths if len(n) > 1)))


def column_to_numpy(column: pa.Array, name: str) -> np.ndarray:
    """Converts a column to a read-only array [rows] or, for lists of equal length, [rows, length].

    Numbers without nulls and lists of them are not copied. A null among floats becomes NaN. Strings
    and binaries become objects, and their nulls None.

    Raises:
        ValueError: the column has an unsupported type, nulls, or lists of different lengths.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    is_number = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if column.null_count and (is_number or is_list(kind)):
        raise invalid(
            f"column {name!r} ({kind}) has nulls ({column.null_count} of {len(column)} values), "
            "which arrays do not support: drop or fill them in Spark (na.drop, coalesce)"
        )
    if is_list(kind):
        return _of_one_length(column, name)
    if is_number or pa.types.is_floating(kind) or _is_bytes(kind):
        return column.to_numpy(zero_copy_only=False)
    raise invalid(f"column {name!r} has the type {kind}, which arrays do not support: {CAST}")


def is_list(kind: pa.DataType) -> bool:
    """Whether the type is a list type."""
    import pyarrow as pa

    types = pa.types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    """Whether the type is a string or binary type."""
    import pyarrow as pa

    types = pa.types
    known = (types.is_string, types.is_large_string, types.is_string_view)
    binary = (types.is_binary, types.is_large_binary, types.is_binary_view)
    return any(test(kind) for test in (*known, *binary, types.is_fixed_size_binary))


def _of_one_length(column: pa.Array, name: str) -> np.ndarray:
    import pyarrow.compute as pc

    values = column_to_numpy(column.flatten(), name)
    lengths = pc.list_value_length(column).to_numpy()
    if len(lengths) and (lengths != lengths[0]).any():
        raise invalid(_other_lengths(name, set(lengths.tolist())))
    length = int(lengths[0]) if len(lengths) else 0
    return values.reshape(len(column), length, *values.shape[1:])


def _ragged_arrays(column: pa.Array, name: str) -> np.ndarray:
    """Converts lists to an array per row, with None for nulls."""
    import pyarrow.compute as pc

    values = column_to_numpy(column.flatten(), name)
    lengths = pc.list_value_length(column)
    ends = np.cumsum(lengths.fill_null(0).to_numpy())
    rows = np.empty(len(column), object)
    for row, (length, end) in enumerate(zip(lengths.to_pylist(), ends, strict=True)):
        rows[row] = None if length is None else values[end - length : end].copy()
    return rows


def _other_lengths(name: str, lengths: set[int]) -> str:
    return (
        f"column {name!r} has lists of different lengths ({sorted(lengths)[:4]}), which do not fit "
        f"an array: pad them in Spark (a feed returns an array per row with ragged=({name!r},))"
    )


def _column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    found = batch.schema.get_all_field_indices(name)
    if len(found) != 1:
        raise invalid(
            f"the rows have {len(found) or 'no'} column{'s'[: len(found)]} {name!r}; their "
            f"columns are {', '.join(batch.schema.names)}"
        )
    return batch.column(found[0])


class _Writable:
    """Presents an array as writable."""

    def __init__(self, array: np.ndarray):
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        self._array = array
