"""What the tasks of predict() do where each executor has the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hearth.ml import predictors
from hearth.ml.predict_rows import WaitingRows, blocks, minibatches
from hearth.ml.predictors import Program

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


@dataclass(frozen=True)
class Prediction:
    """A model and the columns that it reads, as they travel to the tasks.

    `read`: what tasks call the program's inputs; `kept`: the columns that stay.
    """

    program: Program
    read: tuple[str, ...]
    kept: tuple[str, ...]
    batch_size: int


def predicted(
    spec: Prediction, made: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yields each batch's kept columns and the model's outputs."""
    predictor = predictors.predictor_of(spec.program)
    partition, before = _partition_id(), 0
    rows = WaitingRows(spec.kept, made, partition)
    for inputs, count in prepared(spec, partition, rows.through(batches)):
        with of_rows(partition, before, count):
            found = predictor(inputs)
        before += count
        yield from rows.with_results(found)
    rows.check_none()


def prepared(
    spec: Prediction, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """The model's arguments for each minibatch, and its number of rows."""
    preparer = predictors.preparer_of(spec.program)
    names = spec.program.inputs
    before = 0
    for arrays in minibatches(blocks(batches, names, spec.read, partition), spec.batch_size):
        count = len(arrays[0])
        with of_rows(partition, before, count):
            yield preparer(arrays), count
        before += count


@contextmanager
def of_rows(partition: int, before: int, count: int) -> Iterator[None]:
    """Adds to a ValueError which rows it is about."""
    try:
        yield
    except ValueError as error:
        where = f"rows {before} to {before + count - 1} of partition {partition}"
        raise ValueError(f"{error}; in {where}") from error


def _partition_id() -> int:
    from hearth.cluster.feed_spec import partition_id

    return partition_id()


def arrow_schema(schema: Any) -> pa.Schema:
    """Of a StructType."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema)
