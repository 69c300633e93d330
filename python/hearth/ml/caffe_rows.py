"""What CaffeModel's tasks do: the net's blobs beside each row, which stays as it is."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hearth.rows.unusable_rows import PLACE
from hearth.trainer.predict_task import PredictSpec, features_task

if TYPE_CHECKING:
    import pyarrow as pa

# The column that holds a whole row of the input.
ROW = "__hearth_row"


@dataclass(frozen=True)
class Beside:
    """A transformation, as it travels to the tasks; `read`: the columns of the net's layer."""

    predict: PredictSpec
    read: tuple[str, ...]


def blobs_beside_rows(spec: Beside, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the whole rows and the blobs, in order; nulls where the net cannot use a row."""
    import pyarrow as pa

    waiting: collections.deque[pa.Array] = collections.deque()  # rows that went in
    first = 0  # number of the first of them

    def numbered() -> Iterator[pa.RecordBatch]:
        """In features_task()'s own thread."""
        count = 0
        for batch in batches:
            names = [str(number) for number in range(count, count + batch.num_rows)]
            count += batch.num_rows
            waiting.append(batch.column(ROW))
            columns = [batch.column(name) for name in spec.read]
            yield pa.RecordBatch.from_arrays([*columns, pa.array(names)], [*spec.read, "id"])

    blobs = spec.predict.job["features"]
    for found in features_task(spec.predict, numbered()):
        if PLACE in found.schema.names and found.column(PLACE).null_count == 0:
            continue  # the names of rows that cannot be used, for features()
        numbers = [int(name) for name in found.column("SampleID").to_pylist()]
        end = numbers[-1] + 1 if numbers else first
        rows = _taken(waiting, end - first)
        yield _beside(rows, found, [number - first for number in numbers], blobs)
        first = end
    if waiting:
        rows = _taken(waiting, sum(map(len, waiting)))
        yield _beside(rows, None, [], blobs)


def _taken(waiting: collections.deque[Any], count: int) -> pa.Array:
    """The first rows."""
    import pyarrow as pa

    parts = []
    while count > 0:
        part = waiting.popleft()
        if len(part) > count:
            waiting.appendleft(part.slice(count))
            part = part.slice(0, count)
        parts.append(part)
        count -= len(part)
    return pa.concat_arrays(parts) if len(parts) != 1 else parts[0]


def _beside(
    rows: pa.Array, found: pa.RecordBatch | None, places: list[int], blobs: list[str]
) -> pa.RecordBatch:
    """Rows and blobs; `places`: of the rows for which there are any."""
    import pyarrow as pa

    columns = []
    indices: list[int | None] = [None] * len(rows)
    for at, place in enumerate(places):
        indices[place] = at
    for blob in blobs:
        if found is None:
            columns.append(pa.nulls(len(rows), pa.list_(pa.float32())))
        else:
            columns.append(found.column(blob).take(pa.array(indices, pa.int64())))
    return pa.RecordBatch.from_arrays([rows, *columns], names=[ROW, *blobs])
