"""Partition files of a node, held by its supervisor: one unnamed file per attempt to write a
partition.

A writer (a Spark task, or a reader process of this host) appends batches and reports the committed
size. The program maps the files. Complete partitions outlive the program, because the supervisor
holds the descriptors.
"""

from __future__ import annotations

import logging
import os
import resource
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from hearth.cluster.channel import Channel, Message
from hearth.errors import DeadlineExceededError, HearthError
from hearth.files.local_folders import spill_folder

logger = logging.getLogger(__name__)

# Attempt number of files that were adopted from an earlier start of the cluster.
_ADOPTED = -1
# Time limit until the driver has assigned the partitions, and adopted files have been verified.
_PLAN_S = 550.0
_DRAIN_BYTES = 1 << 20
# Descriptor limit to request, because each partition file needs a descriptor and most systems'
# default limit is lower.
_MAX_FILES = 65536


@dataclass(frozen=True)
class CompleteFile:
    """A complete partition file that one supervisor passes to the next."""

    dataset: str
    partition: int
    size: int
    rows: int
    digest: str
    fd: int

    def message(self) -> Message:
        """The fields as a message, without the descriptor."""
        fields = {key: value for key, value in vars(self).items() if key != "fd"}
        return {"op": "file", **fields}

    @classmethod
    def of(cls, message: Message, fd: int) -> CompleteFile:
        """A file from its message() and descriptor."""
        fields = {key: value for key, value in message.items() if key != "op"}
        return cls(**fields, fd=fd)


@dataclass
class _Attempt:
    """One writer's file, with `size` committed bytes and `rows` committed rows."""

    number: int
    fd: int
    size: int = 0
    rows: int = 0
    digest: str = ""  # hash of all rows, once complete

    @property
    def complete(self) -> bool:
        return bool(self.digest)


@dataclass
class _Partition:
    """The attempts to write a partition. `shown`: the attempt that the program reads; replaced only
    if its writer is lost, or if another attempt completes first."""

    attempts: dict[int, _Attempt] = field(default_factory=dict)
    shown: _Attempt | None = None


class PartitionFiles:
    """The partition files of all datasets of one node. A thread serves each writer's connection."""

    def __init__(self, program: Channel, report: Callable[[Message], None]):
        """`program`: the channel to the node's program; `report` sends an event to the driver."""
        self._program = program
        self._report = report
        self._lock = threading.Lock()  # also orders messages to the program
        self._partitions: dict[tuple[str, int], _Partition] = {}
        self._unplanned: set[str] = set()  # adopted datasets that the driver has not confirmed yet
        self._planned = threading.Condition(self._lock)
        self.over = False  # the program has returned and needs no more rows
        raise_file_limit()

    def adopt(self, files: Iterable[CompleteFile]) -> None:
        """Takes ownership of complete files and their descriptors."""
        for file in files:
            with self._lock:
                self._unplanned.add(file.dataset)
                partition = self._partitions.setdefault(
                    (file.dataset, file.partition), _Partition()
                )
                if partition.shown is not None:
                    os.close(file.fd)
                    continue
                attempt = _Attempt(_ADOPTED, file.fd, file.size, file.rows, file.digest)
                partition.attempts[_ADOPTED] = partition.shown = attempt

    def complete(self) -> list[CompleteFile]:
        """All complete files; this object retains ownership of the descriptors."""
        with self._lock:
            shown = [(key, partition.shown) for key, partition in self._partitions.items()]
            return [
                CompleteFile(*key, attempt.size, attempt.rows, attempt.digest, attempt.fd)
                for key, attempt in shown
                if attempt is not None and attempt.complete
            ]

    def show_adopted(self, dataset: str, owned: Iterable[int]) -> set[int]:
        """Passes each adopted partition in `owned` to the program; closes the others and the
        corrupt ones. Writers of an adopted dataset wait until this is done.

        Returns:
            the partitions of `owned` that are complete.
        """
        mine = set(owned)
        with self._lock:
            shown = [(key, partition.shown) for key, partition in self._partitions.items()]
        adopted = [
            (key, attempt)
            for key, attempt in shown
            if key[0] == dataset and attempt is not None and attempt.number == _ADOPTED
        ]
        sound = {key for key, attempt in adopted if key[1] in mine and _is_intact(key, attempt)}
        with self._lock:
            self._unplanned.discard(dataset)
            self._planned.notify_all()
            for key, attempt in adopted:
                if key in sound:
                    self._show(key, attempt, with_file=True)
                else:
                    os.close(attempt.fd)
                    del self._partitions[key]
        found = [file for file in self.complete() if file.dataset == dataset]
        for file in found:
            self._report_rows((dataset, file.partition), file.rows, file.digest)
        return {file.partition for file in found}

    def serve(self, channel: Channel, greeting: Message, remote: bool) -> None:
        """Serves a writer's connection until the writer has written its partition, or is lost."""
        key = (str(greeting["dataset"]), int(greeting["partition"]))
        try:
            attempt = self._begin(key, int(greeting["attempt"]))
        except OSError as error:  # e.g. no folder, or out of descriptors
            channel.send({"error": f"cannot create a file for them: {error}"})
            return
        if attempt is None:
            self._count(channel, key)
            return
        if attempt.complete:
            self._report_rows(key, attempt.rows, attempt.digest)
            channel.send({"op": "have", "rows": attempt.rows, "hash": attempt.digest})
            return
        try:
            if remote:
                self._receive(channel, key, attempt)
            else:
                self._follow(channel, key, attempt)
            channel.send({"op": "kept"})
        finally:
            if not attempt.complete or self._partitions[key].shown is not attempt:
                self._drop(key, attempt)

    def _begin(self, key: tuple[str, int], number: int) -> _Attempt | None:
        """Starts an attempt, or returns the complete one; None if no more rows are needed."""
        with self._lock:
            if not self._planned.wait_for(lambda: key[0] not in self._unplanned, _PLAN_S):
                raise DeadlineExceededError(
                    f"the driver did not assign the dataset's partitions within {_PLAN_S:g} s"
                )
            partition = self._partitions.setdefault(key, _Partition())
            if partition.shown is not None and partition.shown.complete:
                return partition.shown
            if self.over:
                return None
            attempt = _Attempt(number, _unnamed_file(spill_folder(key[1])))
            partition.attempts[number] = attempt
            return attempt

    def _count(self, channel: Channel, key: tuple[str, int]) -> None:
        """Makes the writer only count its rows: this node no longer needs them, but other ranks
        wait for the total."""
        channel.send({"op": "over"})
        message, _ = channel.receive()
        self._report_rows(key, message["rows"], "")
        channel.send({"op": "kept"})

    def _follow(self, channel: Channel, key: tuple[str, int], attempt: _Attempt) -> None:
        """Serves a writer on this host, which writes to the file directly."""
        channel.send({"op": "file"}, fds=(attempt.fd,))
        while True:
            message, _ = channel.receive()
            digest = str(message["hash"]) if message["op"] == "end" else ""
            self._commit(key, attempt, message["bytes"], message["rows"], digest)
            if digest:
                return

    def _receive(self, channel: Channel, key: tuple[str, int], attempt: _Attempt) -> None:
        """Receives rows from a writer on another host, and writes them to the file."""
        from hearth.native._core import receive_partition

        channel.send({"op": "send"})

        def commit(size: int, rows: int) -> None:
            self._commit(key, attempt, size, rows, "")

        try:
            size, rows, digest = receive_partition(channel.fileno(), attempt.fd, commit)
        except Exception as error:  # e.g. a full disk
            _refuse(channel, str(error))
            raise
        self._commit(key, attempt, size, rows, f"{digest:016x}")

    def _commit(
        self, key: tuple[str, int], attempt: _Attempt, size: int, rows: int, digest: str
    ) -> None:
        """Records the valid size of the attempt's file; a nonempty digest completes the attempt."""
        with self._lock:
            attempt.size, attempt.rows, attempt.digest = size, rows, digest
            partition = self._partitions[key]
            shown = partition.shown
            if shown is not attempt and shown is not None:
                if shown.complete or not digest:
                    return
                self._notify_program({"op": "dataset_lost", **_named(key), "attempt": shown.number})
            is_new = shown is not attempt
            partition.shown = attempt
            self._show(key, attempt, with_file=is_new)
        if digest:
            self._report_rows(key, rows, digest)

    def _report_rows(self, key: tuple[str, int], rows: int, digest: str) -> None:
        """Reports that a partition is complete; an empty digest means that its rows were only
        counted."""
        self._report({"event": "dataset", **_named(key), "rows": rows, "hash": digest})

    def _drop(self, key: tuple[str, int], attempt: _Attempt) -> None:
        """Drops an attempt whose writer was lost or finished second; shows another attempt if there
        is one."""
        with self._lock:
            partition = self._partitions[key]
            partition.attempts.pop(attempt.number, None)
            os.close(attempt.fd)
            if partition.shown is not attempt:
                return
            self._notify_program({"op": "dataset_lost", **_named(key), "attempt": attempt.number})
            others = partition.attempts.values()
            partition.shown = max(others, key=lambda other: other.rows, default=None)
            if partition.shown is not None:
                self._show(key, partition.shown, with_file=True)

    def _show(self, key: tuple[str, int], attempt: _Attempt, with_file: bool) -> None:
        message = {
            "op": "dataset_rows",
            **_named(key),
            "attempt": attempt.number,
            "bytes": attempt.size,
            "rows": attempt.rows,
            "hash": attempt.digest,
        }
        self._notify_program(message, fds=(attempt.fd,) if with_file else ())

    def _notify_program(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        with suppress(OSError):  # the program has ended; the supervisor detects that itself
            self._program.send(message, fds=fds)


def _is_intact(key: tuple[str, int], attempt: _Attempt) -> bool:
    """Whether the rows in the file have the hash that their writer reported. Reads all rows, at
    memory speed if they are cached."""
    from hearth.native._core import partition_hash

    try:
        found = f"{partition_hash(key[1], attempt.fd, attempt.size, attempt.rows):016x}"
    except HearthError as error:
        found, reason = "", str(error)
    else:
        reason = f"its rows have the hash {found} instead of {attempt.digest}"
    if found != attempt.digest:
        logger.warning(
            "dataset %s: the persisted file of partition %d is invalid, and its rows are delivered "
            "again: %s", *key, reason
        )  # fmt: skip
    return found == attempt.digest


def _named(key: tuple[str, int]) -> Message:
    return {"dataset": key[0], "partition": key[1]}


def _refuse(channel: Channel, reason: str) -> None:
    """Sends a writer the reason for refusing its rows, then discards its rows until it
    disconnects."""
    with suppress(OSError):
        channel.send({"error": reason})
        while os.read(channel.fileno(), _DRAIN_BYTES):
            pass


def _unnamed_file(folder: str) -> int:
    """Descriptor of an unnamed file, private to this user."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:  # overlay file systems and NFS do not support O_TMPFILE
        with tempfile.TemporaryFile(dir=folder) as file:
            return os.dup(file.fileno())


def raise_file_limit() -> None:
    """Raises this process's limit of open files for partition files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
