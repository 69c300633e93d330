"""Sends a node's results back to a feed task in columns, without Python objects per value.

Results are sent as Arrow IPC streams of one batch, in the same messages as pickled results; a
stream's first byte cannot start a pickle. Arrays keep their types and shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hearth.errors import invalid
from hearth.rows import pickles
from hearth.rows.columns import column_to_numpy, is_list
from hearth.rows.dense_arrays import value_type
from hearth.rows.results import as_array, as_column

if TYPE_CHECKING:
    import pyarrow as pa

_STREAM = b"\xff"
_RESULT_ROWS = 4096
# Keys of a batch's metadata. _SINGLE: present if a row's result is one value, not a dict. _ERROR:
# an error's message, instead of results.
_SINGLE, _ERROR = b"hearth.single", b"hearth.error"
_PLAIN, _NUMPY = b"plain", b"numpy"  # values of _SINGLE: the kind of values that rows() returns


class ColumnResults:
    """The results of several rows: named arrays, or a single array. Immutable."""

    def __init__(self, batch: pa.RecordBatch):
        self.batch = batch

    @staticmethod
    def of(results: Any, plain: bool = False) -> ColumnResults | None:
        """Converts an array of numbers, a dict of arrays or a record batch; None for other types.

        `plain`: whether rows() returns an array's values as Python numbers and lists, like for
        other inputs.

        Raises:
            ValueError: a dict's arrays have different lengths or an unsupported type.
        """
        import pyarrow as pa

        if isinstance(results, ColumnResults):
            return results
        if isinstance(results, pa.RecordBatch):
            return ColumnResults(results)
        if isinstance(results, np.ndarray) and results.ndim and results.dtype.kind in "biuf":
            how = _PLAIN if plain else _NUMPY
            return ColumnResults(_batch_of({"value": results}, {_SINGLE: how}))
        if isinstance(results, Mapping) and all(hasattr(v, "dtype") for v in results.values()):
            return ColumnResults(_batch_of(results, {}))
        return None

    @staticmethod
    def error(text: str, rows: int) -> ColumnResults:
        """Results that report an error for `rows` rows; the feed task raises it as a ValueError."""
        return ColumnResults(_batch_of({"value": np.zeros(rows, bool)}, {_ERROR: text.encode()}))

    def __len__(self) -> int:
        return self.batch.num_rows

    def slice(self, at: int, count: int) -> ColumnResults:
        """`count` results from index `at`, without copying."""
        return ColumnResults(self.batch.slice(at, count))

    def dumped(self) -> memoryview:
        """Serializes the results for loaded()."""
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.batch.schema) as stream:
            stream.write_batch(self.batch)
        return memoryview(sink.getvalue())

    def check(self) -> None:
        """Raises ValueError if this is an error()."""
        if text := (self.batch.schema.metadata or {}).get(_ERROR):
            raise invalid(text.decode(errors="replace"))

    def arrays(self) -> dict[str, np.ndarray]:
        """The columns as read-only arrays. Raises like check()."""
        self.check()
        names = self.batch.schema.names
        return {
            name: column_to_numpy(column, name)
            for name, column in zip(names, self.batch.columns, strict=True)
        }

    def columns(self, schema: pa.Schema) -> list[pa.Array]:
        """Converts results to the columns of `schema`. Raises like result_columns() and check()."""
        self.check()
        if len(schema) == 1 and self.single:
            return [as_column(self.arrays()["value"], schema.field(0))]
        if self.single:
            array = self.arrays()["value"]
            if array.shape[1:] != (len(schema),):
                raise invalid(
                    f"the results are an array of shape {array.shape}, but the schema has "
                    f"{len(schema)} columns ({', '.join(schema.names)}): return a dict of arrays"
                )
            return [as_column(array[:, i], field) for i, field in enumerate(schema)]
        if missing := set(schema.names) - set(self.batch.schema.names):
            raise invalid(
                f"the results have the columns {', '.join(self.batch.schema.names)}, but the "
                f"schema has {', '.join(sorted(missing))}: use the same names"
            )
        return [_cast(self.batch.column(field.name), field) for field in schema]

    @property
    def single(self) -> bool:
        """Whether a row's result is a single value, not a dict."""
        return _SINGLE in (self.batch.schema.metadata or {})

    def rows(self) -> list[Any]:
        """One value or dict per row. Raises like check()."""
        self.check()
        if not self.single:
            return self.batch.to_pylist()
        values = self.arrays()["value"]
        plain = self.batch.schema.metadata[_SINGLE] == _PLAIN
        return values.tolist() if plain else list(values)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    """Casts the column to Spark's type; checks floating-point numbers like as_column()."""
    import pyarrow as pa

    dense = pa.types.is_fixed_size_list(column.type) or not is_list(column.type)
    if dense and not column.null_count and pa.types.is_floating(value_type(column.type)):
        return as_column(column_to_numpy(column, field.name), field)
    try:
        return column if column.type == field.type else column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise invalid(
            f"the column {field.name!r} of {len(column)} rows does not fit {field.type}: {error}"
        ) from error


def loaded(data: Any, from_remote: bool) -> ColumnResults:
    """The inverse of dumped(). Raises ValueError for other data."""
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
        batch = stream.read_next_batch()
    if from_remote:
        batch.validate(full=True)
    return ColumnResults(batch)


class ResultUnpickler(pickles.Unpickler):
    """Deserializes a node's results, which are ColumnResults or pickled values."""

    def load(self, data: Any, from_remote: bool) -> Any:
        """Deserializes results: columns to ColumnResults, anything else with pickle."""
        if bytes(data[:1]) == _STREAM:
            return loaded(data, from_remote)
        return super().load(data, from_remote)


def result_columns(
    schema: pa.Schema, parts: Iterable[list[Any] | ColumnResults]
) -> Iterator[pa.RecordBatch]:
    """Converts results to the columns of a DataFrame.

    Columnar results are named columns, a single column, or an array whose second dimension is the
    column. A Python object is a row's tuple or dict, or the value of a single column.

    Raises:
        ValueError: a result does not fit its type, or the results have other columns.
    """
    import pyarrow as pa

    waiting: list[Any] = []
    for part in parts:
        if isinstance(part, list):
            waiting += part
        if waiting and (len(waiting) >= _RESULT_ROWS or not isinstance(part, list)):
            yield _of_objects(schema, waiting)
            waiting = []
        if not isinstance(part, list) and len(part):
            yield pa.RecordBatch.from_arrays(part.columns(schema), schema=schema)
    if waiting:
        yield _of_objects(schema, waiting)


def _of_objects(schema: pa.Schema, rows: list[Any]) -> pa.RecordBatch:
    import pyarrow as pa

    if isinstance(rows[0], dict):
        columns = [[row[name] for row in rows] for name in schema.names]
    elif len(schema) > 1 or isinstance(rows[0], tuple):
        columns = list(zip(*rows, strict=True))
    else:
        columns = [rows]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def wire_column(array: np.ndarray) -> pa.Array:
    """Converts an array to a column that column_to_numpy() converts back.

    Raises:
        ValueError: the array's type is unsupported.
    """
    import pyarrow as pa

    if array.dtype.kind not in "biufOU":
        raise invalid(
            f"an array of type {array.dtype} cannot be sent to or by a node: convert it to "
            "numbers, strings or bytes"
        )
    if array.dtype.kind in "OU":
        column = pa.array(array.reshape(-1).tolist())
    else:
        flat = np.ascontiguousarray(array).reshape(-1)
        # Rings do not support float16.
        column = pa.array(flat.astype(np.float32) if array.dtype == np.float16 else flat)
    for depth in range(array.ndim - 1, 0, -1):
        length, count = array.shape[depth], math.prod(array.shape[:depth])
        if length:
            column = pa.FixedSizeListArray.from_arrays(column, length)
        else:
            column = pa.ListArray.from_arrays(pa.array([0] * (count + 1), pa.int32()), column)
    return column


def _batch_of(arrays: Mapping[str, Any], metadata: Mapping[bytes, bytes]) -> pa.RecordBatch:
    import pyarrow as pa

    columns = {name: wire_column(as_array(value)) for name, value in arrays.items()}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise invalid(f"results have different numbers of rows ({lengths}): return one per row")
    batch = pa.RecordBatch.from_pydict(columns)
    return batch.replace_schema_metadata(metadata) if metadata else batch
