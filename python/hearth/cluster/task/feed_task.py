"""Sends the rows of a Spark task's partition to a node, and fetches results."""

from __future__ import annotations

import atexit
import gc
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from hearth.cluster import relay
from hearth.cluster.channel import Channel, Message
from hearth.cluster.errors import ClusterError, FeedTimeoutError, NodeError, took_none
from hearth.cluster.feed_spec import FeedSpec
from hearth.cluster.node_connection import connect, is_remote, name_of
from hearth.cluster.task.node_process import executor_pid
from hearth.errors import HearthError
from hearth.rows.column_results import ColumnResults, ResultUnpickler

if TYPE_CHECKING:
    import pyarrow as pa

_REASON_TIMEOUT_S = 8.0
# A node's messages that do not end the partition.
_KEEPING = ("begin", "taken", "progress")


class TerminatedError(NodeError):
    """Raised because the node has ended its feed and skips remaining rows."""


class Connection:
    """A feed task's connection to a node, with a ring in each direction; reused by later tasks."""

    def __init__(self, node: Message, spec: FeedSpec):
        """Connects. Raises NodeError with the node's reason if the node takes no more rows."""
        from hearth.native._core import RingReader, RingWriter

        self.node = node
        self.token = spec.token
        self.from_remote = is_remote(node)
        self.where = name_of(node)
        size = relay.REMOTE_RING_BYTES if self.from_remote else relay.RING_BYTES
        self.ring = RingWriter(size)
        self.results = RingReader(size)
        self._inbox: SimpleQueue[Message] = SimpleQueue()
        self.answer: Message | None = None  # the answer that ended the partition
        self.over = False
        # The limit is longer until the first heartbeat, because the node's program may take long to
        # start.
        self._spec, self._silence_s = spec, 10 * spec.beat_s or None
        self._channel = self._open(spec, {"op": "feed", "feed": spec.feed})
        answer = self._receive()
        if "error" in answer:
            raise NodeError(answer["error"])
        if answer["op"] == "terminated":
            raise TerminatedError(f"{self.where} needs no more rows")
        if self.from_remote:
            self._channel = relay.at_task(self._channel)
        self._channel.send({"op": "rings"}, fds=(*self.ring.fds(), *self.results.fds()))
        self.ring.close_child_fds()
        self.results.close_child_fds()
        self._listener = threading.Thread(target=self._listen, name="hearth-feed", daemon=True)
        self._listener.start()

    def _open(self, spec: FeedSpec, greeting: Message) -> Channel:
        return connect(self.node, spec.token, greeting)

    def _receive(self) -> Message:
        try:
            return self._channel.receive(_REASON_TIMEOUT_S)[0]
        except (EOFError, OSError) as error:
            return {"error": f"{self.where} does not respond to its feed: {error}"}

    def _listen(self) -> None:
        """Handles the node's messages; if one ends the partition, ends waits on the rings."""
        try:
            while True:
                message, _ = self._channel.receive(self._silence_s)
                if message.get("op") == "alive":
                    self._silence_s = self._spec.beat_s
                    continue
                if message.get("op") not in _KEEPING:
                    self._end_waits(message)
                self._inbox.put(message)
        except TimeoutError:
            message = {"error": self._hung()}
            self._end_waits(message)
        except (EOFError, OSError):
            message = {"lost": True}  # the rings end, too, once their contents are read
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            message = {"error": f"{self.where} sent an invalid message: {what}"}
            self._end_waits(message)
        self.over = True
        self._inbox.put(message)

    def _end_waits(self, answer: Message) -> None:
        self.answer = self.answer or answer
        self.ring.close()
        self.results.close()

    def begin(self, spec: FeedSpec, partition: int) -> Message | None:
        """Returns None once rows may be sent, or else the answer that ended the partition.

        Raises:
            FeedTimeoutError: as wait_taken().
        """
        message = {
            "op": "partition",
            "feed": spec.feed,
            "index": partition,
            "queue": spec.queue,
            "mode": spec.mode,
            "format": spec.format,
            "batched": spec.batched,
            "keep": spec.keep,
            "fenced": spec.fenced,
        }
        try:
            self._channel.send(message)
        except OSError:
            return {"lost": True}
        if not spec.fenced:
            return None
        message = self.wait_taken(spec)
        return None if message.get("op") == "begin" else message

    def end(self, entries: int, timeout_s: float) -> None:
        """Marks the end of the partition's rows."""
        self.ring.flush(timeout_s)
        self._channel.send({"op": "end", "entries": entries})

    def wait_taken(self, spec: FeedSpec) -> Message:
        """The answer that ended the partition: {"op": "taken"} or "terminated", an error, or
        "lost".

        Raises:
            FeedTimeoutError: the node made no progress for `spec.timeout_s`.
        """
        while True:
            try:
                message = self._inbox.get(timeout=spec.timeout_s)
            except Empty:
                raise self.timeout(spec) from None
            if message.get("op") != "progress":
                return message

    def timeout(self, spec: FeedSpec) -> FeedTimeoutError:
        """The error to raise, after reporting it to the driver: Spark's retries would delay the
        report."""
        text = took_none(self.where, "rows", spec.timeout_s)
        self._report_to_driver(spec, text)
        return FeedTimeoutError(text)

    def _hung(self) -> str:
        """Reports to the driver that the node is abandoned; returns the reason."""
        text = (
            f"{self.where} has sent nothing for {self._silence_s:g} s: its program is stopped or "
            "hangs, or its host is down; the next call starts another node"
        )
        self._report_to_driver(self._spec, text)
        return text

    def _report_to_driver(self, spec: FeedSpec, text: str) -> None:
        with suppress(NodeError):
            self._open(spec, {"op": "timeout", "feed": spec.feed, "text": text}).close()

    def reason(self, spec: FeedSpec) -> str:
        """Requests the reason for the node's end from its supervisor."""
        with suppress(NodeError):
            channel = self._open(spec, {"op": "why"})
            with suppress(EOFError, OSError):
                return channel.receive(_REASON_TIMEOUT_S)[0]["error"] or f"{self.where} went away"
        return f"{self.where} went away, and so did its executor"

    def close(self) -> None:
        """Closes the connection and its rings, and waits for the thread that reads messages."""
        self._channel.end()
        self.ring.close()
        self.results.close()
        self._listener.join()
        self._channel.close()


# This Python worker's connection to each node that it feeds, by the node's address. Later tasks
# reuse these connections, because Spark reuses the worker.
_connections: dict[str, Connection] = {}


@atexit.register
def _close_connections() -> None:
    for connection in _connections.values():
        connection.close()
    _connections.clear()


def _connect(spec: FeedSpec, partition: int) -> Connection:
    for name, connection in list(_connections.items()):
        if connection.token != spec.token:
            del _connections[name]
            connection.close()
    node = choose_node(spec.nodes, partition)
    kept = _connections.pop(node["addr"], None)
    if kept is not None:
        if not kept.over:
            return kept
        kept.close()  # the node has closed the connection since
    connection = Connection(node, spec)
    # Spark's daemon collects garbage after each task. This takes tens of milliseconds, mostly for
    # objects created by imports, so freeze() excludes these objects.
    gc.collect()
    gc.freeze()
    return connection


def choose_node(nodes: Iterable[Message], partition: int) -> Message:
    """Chooses a node of this executor, else of this host, else any; alternates between several."""
    nodes = list(nodes)
    here = executor_pid()
    host = socket.gethostname()
    near = [node for node in nodes if node["executor_pid"] == here]
    near = near or [node for node in nodes if node["host_name"] == host]
    near = near or nodes
    return near[partition % len(near)]


def feed(spec: FeedSpec, partition: int, batches: Iterator[pa.RecordBatch]) -> bool | None:
    """Sends one partition to a node and waits until it is consumed.

    If another attempt is sending or has sent the partition, waits for that attempt instead.

    Returns:
        Whether the node needs no more rows; None for an empty partition.

    Raises:
        NodeError: the node failed, or its cluster did.
        FeedTimeoutError: it consumed no rows for `spec.timeout_s`.
    """
    first = None if partition in spec.safe else next(batches, None)
    if first is None:
        return None
    try:
        connection = _connect(spec, partition)
    except TerminatedError:
        return True
    try:
        ended = connection.begin(spec, partition)
        if ended is None:
            with _ring_errors(connection, spec):
                entries = _write(connection, first, batches, spec.timeout_s)
                connection.end(entries, spec.timeout_s)
            ended = connection.wait_taken(spec)
    except BaseException:
        connection.close()
        raise
    return _conclude(connection, ended, spec)


def _conclude(connection: Connection, ended: Message, spec: FeedSpec) -> bool:
    """Keeps or closes the connection after a partition; returns whether the node needs no more
    rows."""
    if ended.get("op") == "taken":
        _connections[connection.node["addr"]] = connection
        return False
    connection.close()
    if ended.get("op") == "terminated":
        return True
    raise NodeError(ended.get("error") or connection.reason(spec))


@contextmanager
def _ring_errors(connection: Connection, spec: FeedSpec) -> Iterator[None]:
    """Suppresses errors of a ring if the node reports, or is about to report, why it ended."""
    try:
        yield
    except TimeoutError:
        raise connection.timeout(spec) from None
    except (ClusterError, ValueError):
        raise
    except (HearthError, OSError) as error:
        if connection.answer is None and not isinstance(error, ConnectionError):
            raise


def _write(
    connection: Connection, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch], timeout_s: float
) -> int:
    entries = 0
    batch: pa.RecordBatch | None = first
    while batch is not None:
        if not connection.ring.write(batch, timeout_s):
            break
        entries += batch.num_rows
        batch = next(rest, None)
    return entries


def infer(
    spec: FeedSpec, partition: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[list[Any] | ColumnResults]:
    """Sends one partition to a node and yields results of several rows at a time, in order.

    A separate thread writes the rows, so a full ring in one direction does not block the other.

    Raises:
        NodeError, FeedTimeoutError: as feed().
    """
    first = next(batches, None)
    if first is None:
        return
    connection = _connect(spec, partition)
    try:
        if connection.begin(spec, partition) is not None:
            raise NodeError(connection.reason(spec))
        feeder = _Feeder(connection, first, batches, spec)
        try:
            with _ring_errors(connection, spec):
                yield from _results(connection, spec)
        except Exception:
            feeder.check()  # a failed feeder has closed the ring of results
            raise
        feeder.join()
        ended = connection.wait_taken(spec)
    except BaseException:
        connection.close()
        raise
    if _conclude(connection, ended, spec):
        raise TerminatedError(f"{connection.where} has ended its feed and returns no more results")


def infer_rows(spec: FeedSpec, partition: int, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """Like infer(), but yields one row's result at a time."""
    for part in infer(spec, partition, batches):
        yield from part if isinstance(part, list) else part.rows()


class _Feeder:
    """A thread that writes a partition's rows; its failure is raised by join()."""

    def __init__(self, connection: Connection, first: Any, rest: Iterator[Any], spec: FeedSpec):
        self._error: BaseException | None = None
        self._connection = connection
        arguments = (first, rest, spec)
        self._thread = threading.Thread(target=self._run, args=arguments, daemon=True)
        self._thread.start()

    def _run(self, first: Any, rest: Iterator[Any], spec: FeedSpec) -> None:
        connection = self._connection
        try:
            with _ring_errors(connection, spec):
                entries = _write(connection, first, rest, spec.timeout_s)
                connection.end(entries, spec.timeout_s)
        except BaseException as error:
            self._error = error
            connection.results.close()  # ends the wait for results

    def join(self) -> None:
        self._thread.join()
        self.check()

    def check(self) -> None:
        """Raises the thread's failure, if it has failed."""
        if self._error is not None:
            raise self._error


def _results(connection: Connection, spec: FeedSpec) -> Iterator[list[Any] | ColumnResults]:
    unpickler = ResultUnpickler()
    while True:
        kind, entry = connection.results.next(spec.timeout_s)
        if kind != "batch":
            return
        yield from unpickler.values(entry, connection.from_remote)
