"""Minibatches cut across a partition's Arrow batches, and results put beside the rows' columns."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Block = list[np.ndarray]
    # Columns of some rows' results, of the blocks that the model gave.
    Convert = Callable[[Sequence[Any], pa.Schema], list[pa.Array]]

# Kept columns of rows whose results are not there yet: reading waits above this, once there are
# enough rows for two minibatches.
MOST_WAITING_BYTES = 64 << 20


def blocks(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], read: Sequence[str], partition: int
) -> Iterator[Block]:
    """An array for each of the columns `read`, which messages call `names`, of each Arrow batch.

    Raises:
        ValueError: a null, lists of different lengths, or a type that no array has; names the
            column and the first such row, counted from 0 within the partition.
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
                raise ValueError(
                    f"the column {name!r} has rows of shape {array.shape[1:]} from row {before} of "
                    f"partition {partition} on, but {shape} before it, and no minibatch holds "
                    "both: pad the rows to one length"
                )
            block.append(array)
        before += batch.num_rows
        yield block


def _array(column: pa.Array, name: str, partition: int, before: int) -> np.ndarray:
    from hearth.rows.dense_arrays import dense_array

    try:
        return dense_array(column, name)
    except ValueError as error:
        invalid = _first_invalid(len(column), lambda n: dense_array(column.slice(0, n), name))
        raise ValueError(
            f"{error}; first in row {before + invalid} of partition {partition}"
        ) from None


def _first_invalid(count: int, convert: Callable[[int], object]) -> int:
    """The first row with which the conversion of all rows up to it, of `count`, fails."""
    least, most = 1, count
    while least < most:
        middle = (least + most) // 2
        try:
            convert(middle)
            least = middle + 1
        except ValueError:
            most = middle
    return least - 1


def as_columns(found: Block, made: pa.Schema) -> list[pa.Array]:
    """The outputs in the types that Spark expects; [rows, 1] where that is one value per row.

    Raises:
        ValueError: a type cannot hold one of them.
    """
    from hearth.rows.columns import is_list
    from hearth.rows.results import as_column

    columns = []
    for values, field in zip(found, made, strict=True):
        one = values.ndim == 2 and values.shape[1] == 1 and not is_list(field.type)
        columns.append(as_column(values[:, 0] if one else values, field))
    return columns


def minibatches(source: Iterable[Block], size: int) -> Iterator[Block]:
    """The rows of a partition in minibatches of `size`; the last one may be smaller."""
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
    import numpy as np

    if len(parts) == 1:
        return parts[0]
    joined = []
    for arrays in zip(*parts, strict=True):
        if len(shapes := {array.shape[1:] for array in arrays}) > 1:
            raise ValueError(
                f"the model gives rows of shapes {sorted(shapes)}, which no column holds together: "
                "make them one length"
            )
        joined.append(np.concatenate(arrays))
    return joined


def _converted(parts: Sequence[Block], made: pa.Schema) -> list[pa.Array]:
    return as_columns(_joined(parts), made)


def joined_columns(parts: Sequence[Sequence[pa.Array]], made: pa.Schema) -> list[pa.Array]:
    """A Convert of results that are columns already."""
    import pyarrow as pa

    return [pa.concat_arrays(column) for column in zip(*parts, strict=True)]


class WaitingRows:
    """Rows whose results are not there yet. One thread adds them, another one their results.

    Results become columns once all of an Arrow batch are there, as one conversion costs as much as
    a small model does.
    """

    def __init__(
        self,
        kept: Sequence[str],
        made: pa.Schema,
        partition: int,
        least: int,
        convert: Convert = _converted,
    ):
        """`kept`, `made`: columns that stay, and the results'; `least`: with fewer rows
        wait_for_room() never waits; `convert`: makes columns of the results."""
        self._convert = convert
        self._kept = list(kept)
        self._partition = partition
        self._made = made
        self._least = least
        self._changed = threading.Condition()  # guards the next four
        self._batches: deque[pa.RecordBatch] = deque()
        self._rows = self._bytes = 0  # rows without results; bytes of the batches
        self._closed = False
        self._found: list[Any] = []  # of the first batch's first rows
        self._found_rows = 0
        self._before = 0  # rows of the batches before it

    def through(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches, each of them noted; waits while there are too many."""
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
        """Notes rows that are on their way to the model."""
        if not batch.num_rows:
            return
        kept = batch.select(self._kept)
        with self._changed:
            self._batches.append(kept)
            self._rows += kept.num_rows
            self._bytes += kept.nbytes

    def with_results(self, found: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        """Takes the results of the next rows, an array for each column; yields the batches whose
        rows now have all of theirs.

        Raises:
            ValueError: a column's type cannot hold a result; or there are more results than rows.
        """
        at, count = 0, len(found[0])
        with self._changed:
            self._rows -= count
            self._changed.notify_all()
        while at < count:
            if not self._batches:
                raise ValueError(f"the model gave {count - at} results more than there are rows")
            rows = self._batches[0].num_rows
            part = min(rows - self._found_rows, count - at)
            self._found.append([array[at : at + part] for array in found])
            self._found_rows, at = self._found_rows + part, at + part
            if self._found_rows == rows:
                yield self._completed()

    def _completed(self) -> pa.RecordBatch:
        import pyarrow as pa

        made = self._columns()
        self._found, self._found_rows = [], 0
        with self._changed:
            batch = self._batches.popleft()
            self._bytes -= batch.nbytes
            self._changed.notify_all()
        self._before += batch.num_rows
        names = [*self._kept, *self._made.names]
        return pa.RecordBatch.from_arrays([*batch.columns, *made], names=names)

    def _columns(self) -> list[pa.Array]:
        try:
            return self._convert(self._found, self._made)
        except ValueError as error:
            found = _joined(self._found)
            invalid = _first_invalid(
                len(found[0]), lambda n: self._convert([[a[:n] for a in found]], self._made)
            )
            where = f"row {self._before + invalid} of partition {self._partition}"
            raise ValueError(f"{error}; first in {where}") from None

    def check_none(self) -> None:
        """Raises ValueError where rows have no results."""
        if self._batches:
            raise ValueError(f"{self._rows} rows have got no results of the model")

    def close(self) -> None:
        """Ends a wait for room: no more results will come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
