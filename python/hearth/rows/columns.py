"""Arrow batches as minibatches: a column becomes an array once, whatever is cut from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class Columns:
    """Some rows of a record batch. One thread uses it."""

    __slots__ = ("_arrays", "_batch", "_start", "_stop")

    def __init__(self, batch: pa.RecordBatch):
        self._batch = batch
        self._arrays: dict[str, np.ndarray] = {}  # of the whole batch; its slices share them
        self._start, self._stop = 0, batch.num_rows

    def __len__(self) -> int:
        return self._stop - self._start

    def slice(self, at: int, count: int) -> Columns:
        """`count` of these rows from `at` on, or as many as there are; nothing is copied."""
        part = Columns.__new__(Columns)
        part._batch, part._arrays = self._batch, self._arrays
        part._start = self._start + at
        part._stop = min(part._start + count, self._stop)
        return part

    @property
    def names(self) -> list[str]:
        return self._batch.schema.names

    def array(self, name: str) -> np.ndarray:
        """As column_to_numpy() says, of the batch's column."""
        whole = self._arrays.get(name)
        if whole is None:
            whole = self._arrays[name] = column_to_numpy(self._batch.column(name))
        return whole[self._start : self._stop]

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as Python objects."""
        part = self._batch.slice(self._start, len(self))
        return list(zip(*(column.to_pylist() for column in part.columns), strict=True))


def column_to_numpy(column: pa.Array) -> np.ndarray:
    """The column's values, shape [rows] or, for lists of one length, [rows, length].

    Without a copy for numbers without nulls, and lists of them; other types become objects.
    """
    import numpy as np
    import pyarrow as pa

    kind = column.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if column.null_count == 0:
            values = column_to_numpy(column.flatten())
            if pa.types.is_fixed_size_list(kind):
                return values.reshape(len(column), kind.list_size, *values.shape[1:])
            offsets = column.offsets.to_numpy()
            lengths = np.diff(offsets)
            if len(lengths) and (lengths == lengths[0]).all():
                return values.reshape(len(column), int(lengths[0]), *values.shape[1:])
        return column.to_numpy(zero_copy_only=False)
    if column.null_count == 0 and pa.types.is_primitive(kind) and not pa.types.is_boolean(kind):
        return column.to_numpy(zero_copy_only=True)
    return column.to_numpy(zero_copy_only=False)
