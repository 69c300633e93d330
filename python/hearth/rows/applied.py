"""Applies a model to the rows of a partition.

Three threads work concurrently: one reads and prepares rows, the model thread computes, and Spark's
thread consumes the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hearth.errors import invalid
from hearth.rows.model_thread import start_in_model_thread
from hearth.rows.pipe import Pipe
from hearth.rows.predict_rows import WaitingRows, blocks, minibatches
from hearth.spark.task_resources import partition_id

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Arrays = Mapping[str, np.ndarray]
    # Computes the outputs of a minibatch, in order; an output's first dimension is the row.
    Model = Callable[[Arrays], list[np.ndarray]]
    # Converts the read columns of a minibatch to the model's arguments.
    Prepare = Callable[[list[np.ndarray]], Arrays]


@dataclass(frozen=True)
class ModelColumns:
    """The columns that a task reads and keeps, and the model's batch size.

    `read`: the columns to read; `inputs`: their names for the model and messages; `kept`: the
    columns that remain in the output.
    """

    inputs: tuple[str, ...]
    read: tuple[str, ...]
    kept: tuple[str, ...]
    batch_size: int


def applied(
    columns: ModelColumns,
    made: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    load: Callable[[], Model],
    load_prepare: Callable[[], Prepare] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yields each batch's kept columns and the model's outputs.

    Args:
        columns: the columns to read and keep.
        made: the schema of the model's output columns.
        batches: the rows; consumed in a separate thread.
        load: returns the model; called in the model thread if there are rows.
        load_prepare: called in the reading thread; returns the function that converts columns.

    Raises:
        ValueError: the model or a column does not accept a value; the message names the rows.
    """
    partition = partition_id()
    rows = WaitingRows(columns.kept, made, partition, least=2 * columns.batch_size)
    inputs: Pipe[tuple[Arrays, int]] = Pipe(lambda item: _bytes(item[0].values()))
    found: Pipe[list[np.ndarray]] = Pipe(_bytes)
    ready = prepared(columns, partition, rows.through(batches), load_prepare)
    inputs.fill_in_thread(ready, "hearth-rows")
    computing = start_in_model_thread(lambda: found.fill(_computed(inputs, partition, load)))
    try:
        for outputs in found:
            yield from rows.with_results(outputs)
        rows.check_none()
    finally:
        rows.close()
        inputs.close()
        found.close()
        computing.cancel()


def _computed(
    inputs: Iterable[tuple[Arrays, int]], partition: int, load: Callable[[], Model]
) -> Iterator[list[np.ndarray]]:
    model, before = None, 0
    for arrays, count in inputs:
        model = model or load()
        with of_rows(partition, before, count):
            outputs = model(arrays)
        before += count
        yield outputs


def prepared(
    columns: ModelColumns,
    partition: int,
    batches: Iterable[pa.RecordBatch],
    load_prepare: Callable[[], Prepare] | None = None,
) -> Iterator[tuple[Arrays, int]]:
    """The model's arguments and the number of rows of each minibatch."""
    prepare = load_prepare() if load_prepare else None
    names = columns.inputs
    before = 0
    found = blocks(batches, names, columns.read, partition)
    for arrays in minibatches(found, columns.batch_size):
        count = len(arrays[0])
        with of_rows(partition, before, count):
            yield (prepare(arrays) if prepare else dict(zip(names, arrays, strict=True))), count
        before += count


@contextmanager
def of_rows(partition: int, before: int, count: int) -> Iterator[None]:
    """Adds the rows' numbers to the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        where = f"rows {before} to {before + count - 1} of partition {partition}"
        raise invalid(f"{error}; in {where}") from error


def _bytes(arrays: Iterable[np.ndarray]) -> int:
    """Approximate size in bytes; for objects, the sum of the lengths of strings and bytes."""
    return sum(
        sum(map(_length, array.flat)) if array.dtype == object else array.nbytes for array in arrays
    )


def _length(value: object) -> int:
    return len(value) if isinstance(value, bytes | str) else 8
