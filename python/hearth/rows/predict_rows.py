"""Slices a partition's Arrow batches into minibatches, and joins results with the kept columns."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hearth.errors import InvalidArgumentError
from hearth.rows.columns import is_list
from hearth.rows.dense_arrays import dense_array
from hearth.rows.results import as_column

if TYPE_CHECKING:
    Block = list[np.ndarray]
    # Converts blocks of results to columns.
    Convert = Callable[[Sequence[Any], pa.Schema], list[pa.Array]]

# Limit for the kept columns of rows that have no results yet. Above it, reading blocks if there are
# enough rows for two minibatches.
MOST_WAITING_BYTES = 64 << 20


def blocks(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], read: Sequence[str], partition: int
) -> Iterator[Block]:
    """Converts the columns `read` of each Arrow batch to arrays; messages use `names`.

    Raises:
        ValueError: a column has a null, lists of different lengths, or an unsupported type; the
            message has the column and the first such row, counted from 0 within the partition.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    before = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        block = []
        for name, column in zip(names, map(batch.column, read), strict=True):
            array = _array(column, name, partition, before)
            shape = shapes.setdefault(name, array.shape[1:])
            if array.shape[1:] != shape:
                raise InvalidArgumentError(
                    f"the column {name!r} has rows of shape {array.shape[1:]} from row {before} of "
                    f"partition {partition} on, but {shape} before it, which do not fit into one "
                    "minibatch: pad the rows to the same length"
                )
            block.append(array)
        before += batch.num_rows
        yield block


def _array(column: pa.Array, name: str, partition: int, before: int) -> np.ndarray:
    try:
        return dense_array(column, name)
    except ValueError as error:
        invalid = _first_invalid(len(column), lambda n: dense_array(column.slice(0, n), name))
        raise InvalidArgumentError(
            f"{error}; first in row {before + invalid} of partition {partition}"
        ) from error


def _first_invalid(count: int, convert: Callable[[int], object]) -> int:
    """The first of `count` rows that cannot be converted, found by binary search."""
    least, most = 1, count
    while least < most:
        middle = (least + most) // 2
        try:
            convert(middle)
            least = middle + 1
        except ValueError:
            most = middle
    return least - 1


def as_columns(found: Block, schema: pa.Schema) -> list[pa.Array]:
    """Converts the outputs to Spark's types; [rows, 1] becomes one value per row.

    Raises:
        ValueError: a value does not fit its type.
    """
    columns = []
    for values, field in zip(found, schema, strict=True):
        one = values.ndim == 2 and values.shape[1] == 1 and not is_list(field.type)
        columns.append(as_column(values[:, 0] if one else values, field))
    return columns


def minibatches(source: Iterable[Block], size: int) -> Iterator[Block]:
    """Slices a partition's rows into minibatches of `size`; the last one may be smaller."""
    waiting: list[Block] = []
    rows = 0
    for block in source:
        at, length = 0, len(block[0])
        while at < length:
            count = min(size - rows, length - at)
            waiting.append([array[at : at + count] for array in block])
            rows, at = rows + count, at + count
            if rows == size:
                yield _joined(waiting)
                waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: Sequence[Block]) -> Block:
    if len(parts) == 1:
        return parts[0]
    joined = []
    for arrays in zip(*parts, strict=True):
        if len(shapes := {array.shape[1:] for array in arrays}) > 1:
            raise InvalidArgumentError(
                f"the model returns rows of shapes {sorted(shapes)}, which do not fit one column: "
                "make them the same length"
            )
        joined.append(np.concatenate(arrays))
    return joined


def _converted(parts: Sequence[Block], schema: pa.Schema) -> list[pa.Array]:
    return as_columns(_joined(parts), schema)


def joined_columns(parts: Sequence[Sequence[pa.Array]], schema: pa.Schema) -> list[pa.Array]:
    """A Convert for results that already are columns."""
    return [pa.concat_arrays(column) for column in zip(*parts, strict=True)]


class WaitingRows:
    """Rows that wait for their results. One thread adds rows, another one adds results.

    Results are only converted to columns when an Arrow batch is complete, because a conversion
    costs as much as a small model.
    """

    def __init__(
        self,
        kept: Sequence[str],
        made: pa.Schema,
        partition: int,
        least: int,
        convert: Convert = _converted,
    ):
        """`kept`: input columns to keep. `made`: the results' columns. `least`: with fewer rows,
        wait_for_room() does not wait. `convert`: converts results to columns.
        """
        self._convert = convert
        self._kept = list(kept)
        self._partition = partition
        self._made = made
        self._least = least
        self._changed = threading.Condition()  # guards _batches, _rows, _bytes, _closed
        self._batches: deque[pa.RecordBatch] = deque()
        self._rows = self._bytes = 0  # rows without results; bytes of the batches
        self._closed = False
        self._found: list[Any] = []  # results of the first batch's first rows
        self._found_rows = 0
        self._before = 0  # number of rows in completed batches

    def through(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the batches unchanged and records them; waits while too many rows lack results."""
        for batch in batches:
            self.wait_for_room()
            self.add(batch)
            yield batch

    def wait_for_room(self) -> None:
        """Returns when more rows may be added, or after close()."""
        with self._changed:
            self._changed.wait_for(self._has_room)

    def _has_room(self) -> bool:
        few = self._rows < self._least or self._bytes < MOST_WAITING_BYTES
        return few or self._closed

    def add(self, batch: pa.RecordBatch) -> None:
        """Records rows sent to the model."""
        if not batch.num_rows:
            return
        kept = batch.select(self._kept)
        with self._changed:
            self._batches.append(kept)
            self._rows += kept.num_rows
            self._bytes += kept.nbytes

    def with_results(self, found: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        """Adds the results of the next rows, an array per column; yields the batches that are
        complete now.

        Raises:
            ValueError: a result does not fit its column's type, or there are more results than
                rows.
        """
        at, count = 0, len(found[0])
        with self._changed:
            self._rows -= count
            self._changed.notify_all()
        while at < count:
            if not self._batches:
                raise InvalidArgumentError(
                    f"the model returned {count - at} more results than rows"
                )
            rows = self._batches[0].num_rows
            part = min(rows - self._found_rows, count - at)
            self._found.append([array[at : at + part] for array in found])
            self._found_rows, at = self._found_rows + part, at + part
            if self._found_rows == rows:
                yield self._completed()

    def _completed(self) -> pa.RecordBatch:
        results = self._columns()
        self._found, self._found_rows = [], 0
        with self._changed:
            batch = self._batches.popleft()
            self._bytes -= batch.nbytes
            self._changed.notify_all()
        self._before += batch.num_rows
        names = [*self._kept, *self._made.names]
        return pa.RecordBatch.from_arrays([*batch.columns, *results], names=names)

    def _columns(self) -> list[pa.Array]:
        try:
            return self._convert(self._found, self._made)
        except ValueError as error:
            found = _joined(self._found)
            invalid = _first_invalid(
                len(found[0]), lambda n: self._convert([[a[:n] for a in found]], self._made)
            )
            where = f"row {self._before + invalid} of partition {self._partition}"
            raise InvalidArgumentError(f"{error}; first in {where}") from error

    def check_none(self) -> None:
        """Raises ValueError if some rows have no results."""
        if self._batches:
            raise InvalidArgumentError(f"the model returned no results for {self._rows} rows")

    def close(self) -> None:
        """Unblocks wait_for_room(), because no more results will follow."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
