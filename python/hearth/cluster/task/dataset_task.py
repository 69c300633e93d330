"""Writes partitions of a dataset to their node, in Spark tasks and in reader processes."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from hearth.cluster.channel import Channel, Message
from hearth.cluster.errors import NodeError, reported_to_driver
from hearth.cluster.node_connection import connect, name_of
from hearth.spark.task_resources import attempt_id, partition_id

if TYPE_CHECKING:
    import pyarrow as pa

# Time limit for the supervisor's answer, as it may create a file on a slow disk, or read old ones.
_ANSWER_S = 600.0
RESULT_SCHEMA = "partition int, rows bigint, hash string"


@dataclass(frozen=True)
class DatasetSpec:
    """One delivery of a dataset, the same for all its tasks; sent in Spark's task closure.

    `nodes`: the node of each rank; `owners`: the rank of each partition; `grouped`: a task delivers
    several partitions, from a grouped() frame, instead of one.
    """

    name: str
    token: str = field(repr=False)  # must not reach a log
    nodes: tuple[Message, ...]
    owners: tuple[int, ...]
    grouped: bool = False


def grouped(frame: Any, tasks: int) -> Any:
    """Appends a column with the number of each row's partition, and merges partitions into at most
    `tasks` tasks.

    A task costs as much as a thousand rows, so each delivers several partitions. The frame must end
    in a shuffle and a sort. Otherwise Spark may compute the column in the driver, if the driver has
    the rows, and user functions may see the number of the merged task.
    """
    from pyspark.sql import functions

    return frame.select("*", functions.spark_partition_id()).coalesce(tasks)


def deliver_task(spec: DatasetSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of a Spark stage: delivers the task's partition, or with a grouped() frame each
    partition that has rows in the task; yields rows of RESULT_SCHEMA.

    Raises:
        TaskError: deliver() raised NodeError.
    """
    import pyarrow as pa

    runs = _runs(batches) if spec.grouped else [(partition_id(), batches)]
    for index, own in runs:
        with reported_to_driver():
            rows, digest = deliver(spec, index, attempt_id(), own)
        columns = {"partition": pa.array([index], pa.int32()), "rows": [rows], "hash": [digest]}
        yield pa.record_batch(columns)


def _runs(
    batches: Iterator[pa.RecordBatch],
) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """(partition, its rows) for each partition in one task of a grouped() frame."""
    for index, parts in groupby(_parts(batches), lambda part: part[0]):
        yield index, (rows for _, rows in parts)


def _parts(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """(partition, rows) for each run of rows of one partition in a batch of a grouped() frame."""
    for batch in batches:
        numbers = batch.column(batch.num_columns - 1).to_numpy()
        rows = batch.select(range(batch.num_columns - 1))
        ends = [*(np.flatnonzero(np.diff(numbers)) + 1), batch.num_rows]
        begin = 0
        for end in map(int, ends):
            if begin < end:
                yield int(numbers[begin]), rows.slice(begin, end - begin)
            begin = end


def deliver(
    spec: DatasetSpec, partition: int, attempt: int, batches: Iterator[pa.RecordBatch]
) -> tuple[int, str]:
    """Writes the rows of a partition to its owner's file, unless it is complete already.

    Returns:
        (number of rows, their hash); the hash is "" if the node needs no more rows.

    Raises:
        NodeError: the node has ended or failed, or cannot take rows, e.g. because its disk is full.
        OSError, HearthError: the rows cannot be written to its file, or have an unsupported
            type.
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
    """A channel to a node, whose errors become NodeErrors, unlike errors of rows and files."""

    def __init__(self, channel: Channel, node: Message):
        self._node = node
        self.channel = channel

    @contextmanager
    def talk(self) -> Iterator[None]:
        """Converts errors of a lost connection to NodeError."""
        try:
            yield
        except (OSError, EOFError) as error:
            where = name_of(self._node)
            raise NodeError(f"{where} ended while rows were delivered to it") from error

    def send(self, message: Message) -> None:
        with self.talk():
            self.channel.send(message)

    def answer(self) -> tuple[Message, list[int]]:
        """The node's next answer. Raises NodeError if it is an error."""
        with self.talk():
            answer, fds = self.channel.receive(_ANSWER_S, descriptors=1)
        if "error" in answer:
            raise NodeError(f"{name_of(self._node)} cannot take rows: {answer['error']}")
        return answer, fds

    def has_answer(self) -> bool:
        """Whether the node has sent an answer, or has disconnected."""
        return bool(select.select([self.channel.fileno()], [], [], 0)[0])


def _count(link: _Link, batches: Iterator[pa.RecordBatch]) -> int:
    """Counts the rows, and reports their number for other ranks."""
    rows = sum(batch.num_rows for batch in batches)
    link.send({"op": "counted", "rows": rows})
    return rows


def _write(link: _Link, fd: int, batches: Iterator[pa.RecordBatch]) -> tuple[int, str]:
    """Writes all batches to the node's file; returns (rows, hash)."""
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
    """Sends all batches to a node on another host; returns (rows, hash)."""
    from hearth.native._core import PartitionSender

    sender = PartitionSender(link.channel.fileno())
    rows = 0
    for batch in batches:
        if link.has_answer():  # the node refuses more rows, and sent the reason
            return rows, ""
        with link.talk():
            _, rows = sender.write(batch)
    with link.talk():
        sender.end()
    return rows, f"{sender.hash:016x}"
