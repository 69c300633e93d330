"""DataFrame.mapInArrow for columns of any names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.spark.driver_python import use_driver_python

if TYPE_CHECKING:
    import pyarrow as pa

    Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: Any, task: Task, schema: Any) -> Any:
    """As frame.mapInArrow(task, schema), which looks columns up by name, and so fails for names
    with a dot and for duplicates."""
    use_driver_python(frame.sparkSession)
    names = frame.columns
    numbered = frame.toDF(*(f"{i}" for i in range(len(names))))
    return numbered.mapInArrow(partial(_renamed, names, task), schema)


def _renamed(
    names: Sequence[str], task: Task, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return task(batch.rename_columns(names) for batch in batches)
