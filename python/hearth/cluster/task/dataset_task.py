"""Writes partitions of a dataset to their node; in Spark tasks and in reader processes."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hearth.cluster.channel import Channel, Message
from hearth.cluster.errors import NodeError, told_to_driver
from hearth.cluster.node_connection import connect, name_of
from hearth.spark.task_resources import partition_id

if TYPE_CHECKING:
    import pyarrow as pa

# For the supervisor to answer, which may be making a file on a slow disk, or reading kept ones.
_ANSWER_S = 600.0
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
        (rows of the partition, a hash of them); the hash is "" where the node needs no more rows.

    Raises:
        NodeError: the node is gone, has failed, or cannot take rows, as where its disk is full.
        OSError, HearthError: rows cannot be written into its file, or have a type that no batch
            image has.
    """
    node = spec.nodes[spec.owners[partition]]
    greeting = {"dataset": spec.name, "partition": partition, "attempt": attempt}
    channel = connect(node, spec.token, {"op": "dataset", **greeting})
    link = _Link(channel, node)
    try:
        answer, fds = link.answer()
        if answer["op"] == "have":
            return answer["rows"], answer["hash"]
        if answer["op"] == "over":
            written = _count(link, batches), ""
        else:
            written = _write(link, fds[0], batches) if fds else _send(link, batches)
        link.answer()
        return written
    finally:
        channel.close()


class _Link:
    """A channel to a node whose errors are distinguished from those of rows and files."""

    def __init__(self, channel: Channel, node: Message):
        self._node = node
        self.channel = channel

    @contextmanager
    def talk(self) -> Iterator[None]:
        """Raises NodeError for what says that the node is gone."""
        try:
            yield
        except (OSError, EOFError) as error:
            where = name_of(self._node)
            raise NodeError(f"{where} went away while rows were delivered to it") from error

    def send(self, message: Message) -> None:
        with self.talk():
            self.channel.send(message)

    def answer(self) -> tuple[Message, list[int]]:
        """The node's next answer. Raises NodeError where it is an error."""
        with self.talk():
            answer, fds = self.channel.receive(_ANSWER_S, descriptors=1)
        if "error" in answer:
            raise NodeError(f"{name_of(self._node)} cannot take rows: {answer['error']}")
        return answer, fds

    def has_answer(self) -> bool:
        """Whether the node has said something, or is gone."""
        return bool(select.select([self.channel.fileno()], [], [], 0)[0])


def _count(link: _Link, batches: Iterator[pa.RecordBatch]) -> int:
    """How many rows there are, for the other ranks."""
    rows = sum(batch.num_rows for batch in batches)
    link.send({"op": "counted", "rows": rows})
    return rows


def _write(link: _Link, fd: int, batches: Iterator[pa.RecordBatch]) -> tuple[int, str]:
    """(rows, hash) of all batches, which are written into the node's file."""
    from hearth.native._core import PartitionWriter

    writer = PartitionWriter(fd)
    size = rows = 0
    try:
        for batch in batches:
            size, rows = writer.write(batch)
            link.send({"op": "grown", "bytes": size, "rows": rows})
        digest = f"{writer.hash:016x}"
    finally:
        writer.close()
    link.send({"op": "end", "bytes": size, "rows": rows, "hash": digest})
    return rows, digest


def _send(link: _Link, batches: Iterator[pa.RecordBatch]) -> tuple[int, str]:
    """(rows, hash) of all batches, which are sent to a node of another host."""
    from hearth.native._core import PartitionSender

    sender = PartitionSender(link.channel.fileno())
    rows = 0
    for batch in batches:
        if link.has_answer():  # it can take no more, and says why
            return rows, ""
        with link.talk():
            _, rows = sender.write(batch)
    with link.talk():
        sender.end()
    return rows, f"{sender.hash:016x}"
