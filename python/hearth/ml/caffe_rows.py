"""Tasks of CaffeModel, which add the net's blobs to each row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hearth.caffe_jobs.predict_task import PredictSpec, features_task
from hearth.rows.invalid_rows import POSITION
from hearth.rows.predict_rows import WaitingRows, joined_columns
from hearth.spark.task_resources import partition_id


@dataclass(frozen=True)
class BlobColumns:
    """The transformation of a CaffeModel, as sent to tasks.

    `read`: the columns of the net's layer; `kept`: names of the columns that stay.
    """

    predict: PredictSpec
    read: tuple[str, ...]
    kept: tuple[str, ...]


def add_blobs(spec: BlobColumns, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields each batch's kept columns and the blobs, which are null for rows that the net cannot
    use.

    A separate thread reads the batches.
    """
    made = pa.schema([(blob, pa.list_(pa.float32())) for blob in spec.predict.job["features"]])
    waiting = WaitingRows(spec.kept, made, partition_id(), 0, joined_columns)
    rows = _NumberedRows(spec, waiting)
    done = 0  # number of rows that have blobs
    try:
        for found in features_task(spec.predict, rows.numbered(batches)):
            if POSITION in found.schema.names and found.column(POSITION).null_count == 0:
                continue  # the names of invalid rows, which only features() needs
            numbers = [int(name) for name in found.column("SampleID").to_pylist()]
            if numbers:
                blobs = [found.column(name) for name in made.names]
                yield from waiting.with_results(_spread(blobs, numbers, done))
                done = numbers[-1] + 1
        if rows.count > done:
            yield from waiting.with_results(_nulls(made, rows.count - done))
        waiting.check_none()
    finally:
        waiting.close()


class _NumberedRows:
    def __init__(self, spec: BlobColumns, waiting: WaitingRows):
        self._spec = spec
        self._waiting = waiting
        self.count = 0  # number of rows so far

    def numbered(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The columns of the net's layer, and a column `id` with each row's number in the
        partition.

        Does not wait for results, because invalid rows have none. The rings to and from the net
        limit how many rows this generator reads ahead.
        """
        read = self._spec.read
        for batch in batches:
            names = [str(self.count + at) for at in range(batch.num_rows)]
            self.count += batch.num_rows
            self._waiting.add(batch)
            columns = [batch.column(name) for name in read]
            yield pa.RecordBatch.from_arrays(
                [*columns, pa.array(names, pa.string())], [*read, "id"]
            )


def _spread(blobs: list[pa.Array], numbers: list[int], first: int) -> list[Any]:
    """The blobs of the rows `numbers`, with nulls for missing rows from `first` on."""
    count = numbers[-1] + 1 - first
    if count == len(numbers):
        return blobs
    indices: list[int | None] = [None] * count
    for at, number in enumerate(numbers):
        indices[number - first] = at
    return [blob.take(pa.array(indices, pa.int64())) for blob in blobs]


def _nulls(made: pa.Schema, count: int) -> list[Any]:
    return [pa.nulls(count, field.type) for field in made]
