"""What a Spark task does with the rows of one partition of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hearth.cluster.errors import told_to_driver
from hearth.cluster.partition_delivery import DatasetSpec, deliver
from hearth.spark.task_resources import partition_id

if TYPE_CHECKING:
    import pyarrow as pa

RESULT_SCHEMA = "partition int, rows bigint, hash string"


def deliver_task(spec: DatasetSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of a Spark stage: delivers the task's partition; yields RESULT_SCHEMA.

    Raises:
        TaskError: of deliver()'s NodeError.
    """
    import pyarrow as pa
    from pyspark import TaskContext

    context, index = TaskContext.get(), partition_id()
    attempt = context.taskAttemptId() if context is not None else 0
    with told_to_driver():
        rows, digest = deliver(spec, index, attempt, batches)
    columns = {"partition": pa.array([index], pa.int32()), "rows": [rows], "hash": [digest]}
    yield pa.record_batch(columns)
