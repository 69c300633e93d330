"""The tasks of predict() when each executor loads the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.ml import predictors
from hearth.ml.predictors import Program
from hearth.rows.applied import ModelColumns, applied

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Prediction:
    """A model and the columns that it reads, as sent to tasks.

    `read`: the columns that contain the program's inputs; `kept`: the columns that stay.
    """

    program: Program
    read: tuple[str, ...]
    kept: tuple[str, ...]
    batch_size: int

    def columns(self) -> ModelColumns:
        """The columns that tasks read and keep."""
        return ModelColumns(self.program.inputs, self.read, self.kept, self.batch_size)


def predicted(
    spec: Prediction, made: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yields each batch's kept columns and the model's outputs."""
    load = partial(predictors.predictor_of, spec.program)
    prepare = partial(predictors.preparer_of, spec.program)
    return applied(spec.columns(), made, batches, load, prepare)


def arrow_schema(schema: Any) -> pa.Schema:
    """The Arrow schema of a StructType."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema)
