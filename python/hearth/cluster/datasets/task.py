"""Writes partitions of a dataset to their node; in Spark tasks and in reader processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hearth.cluster.channel import Channel, Message
from hearth.cluster.errors import NodeError, told_to_driver
from hearth.cluster.feed_spec import partition_id
from hearth.cluster.node_connection import connect, name_of

if TYPE_CHECKING:
    import pyarrow as pa

# For the supervisor to answer, which may be making a file on a slow disk.
_ANSWER_S = 60.0
RESULT_SCHEMA = "partition int, rows bigint, hash string"


@dataclass(frozen=True)
class DatasetSpec:
    """One delivery of a dataset, the same for all its tasks; travels in Spark's task closure.

    `nodes`: of each rank; `owners`: the rank of each partition.
    """

    name: str
    token: str = field(repr=False)  # it must not reach a log
    nodes: tuple[Message, ...]
    owners: tuple[int, ...]


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


def deliver(
    spec: DatasetSpec, partition: int, attempt: int, batches: Iterator[pa.RecordBatch]
) -> tuple[int, str]:
    """Writes the rows of a partition into its owner's file, unless that has them already.

    Returns:
        (rows of the partition, a hash of them); (-1, "") where the node needs no more rows.

    Raises:
        NodeError: the node is gone, or has failed.
        HearthError: its disk is full, or a batch has a type that no batch image has.
    """
    node = spec.nodes[spec.owners[partition]]
    greeting = {"dataset": spec.name, "partition": partition, "attempt": attempt}
    channel = connect(node, spec.token, {"op": "dataset", **greeting})
    try:
        answer, fds = channel.receive(_ANSWER_S, descriptors=1)
        if "error" in answer:
            raise NodeError(answer["error"])
        if answer["op"] == "over":
            return -1, ""
        if answer["op"] == "have":
            return answer["rows"], answer["hash"]
        rows, digest = _write(channel, fds, batches)
        channel.receive(_ANSWER_S)
        return rows, digest
    except (OSError, EOFError) as error:
        raise NodeError(f"{name_of(node)} went away while rows were delivered to it") from error
    finally:
        channel.close()


def _write(channel: Channel, fds: list[int], batches: Iterator[pa.RecordBatch]) -> tuple[int, str]:
    """(rows, hash) of all batches, which are written into the file, or sent where there is none."""
    from hearth.native import _core

    if not fds:
        sender = _core.PartitionSender(channel.fileno())
        rows = 0
        for batch in batches:
            _, rows = sender.write(batch)
        sender.end()
        return rows, f"{sender.hash:016x}"
    writer = _core.PartitionWriter(fds[0])
    size = rows = 0
    try:
        for batch in batches:
            size, rows = writer.write(batch)
            channel.send({"op": "grown", "bytes": size, "rows": rows})
        digest = f"{writer.hash:016x}"
    finally:
        writer.close()
    channel.send({"op": "end", "bytes": size, "rows": rows, "hash": digest})
    return rows, digest
