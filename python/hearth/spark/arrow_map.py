"""DataFrame.mapInArrow for columns with any names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.spark.driver_python import use_driver_python

if TYPE_CHECKING:
    import pyarrow as pa

    Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: Any, task: Task, schema: Any) -> Any:
    """Like frame.mapInArrow(task, schema), which fails for duplicate names and names with a dot
    because it looks columns up by name.
    """
    use_driver_python(frame.sparkSession)
    names = frame.columns
    numbered = frame.toDF(*(f"{i}" for i in range(len(names))))
    return numbered.mapInArrow(partial(_renamed, names, task), schema)


def _renamed(
    names: Sequence[str], task: Task, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return task(batch.rename_columns(names) for batch in batches)
