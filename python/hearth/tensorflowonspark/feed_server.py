"""The node's side of the feed: connections of feed tasks, partitions waiting in named queues.

A feed task keeps one connection, with a ring each way, for all partitions it brings. Session
threads only announce partitions; the rows are taken from the ring by the thread that wants them.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from hearth.tensorflowonspark import relay
from hearth.tensorflowonspark.channel import Channel, Message
from hearth.tensorflowonspark.errors import ClusterError
from hearth.tensorflowonspark.feed_progress import RowCount
from hearth.tensorflowonspark.pickles import RowFormat
from hearth.tensorflowonspark.spool import Spool

# Feeders hear at least this often that rows are taken.
_PROGRESS_S = 1.0
_FOREVER_S = 1e9


class FeedQueue:
    """The partitions of one feed in the order they came; then the end. Any thread may use it."""

    def __init__(self, name: str, report: Callable[[Message], None]):
        self.name = name
        self.rows = RowCount(report)
        self._changed = threading.Condition()
        self._waiting: deque[Any] = deque()
        self._reading: Any = None
        self._ended = False
        self._failure: str | None = None
        self.terminated = False
        self.spool = Spool()

    def put(self, partition: Any) -> None:
        """Adds a partition, or refuses it where no more rows are wanted."""
        with self._changed:
            if self.terminated:
                partition.drop()
            elif self._failure or self._ended:
                partition.refuse(self._failure or "the feed has been ended by shutdown()")
            else:
                self._waiting.append(partition)
                self._changed.notify_all()

    def next(self) -> Any:
        """Waits for the next partition; None once the feed has ended.

        Raises:
            ClusterError: the cluster failed.
        """
        with self._changed:
            self._reading = None
            self._changed.wait_for(lambda: self._waiting or self._ended or self._failure)
            self.check()
            if self._waiting:
                self._reading = self._waiting.popleft()
            return self._reading

    def check(self) -> None:
        """Raises ClusterError where the cluster has failed."""
        if self._failure:
            raise ClusterError(self._failure)

    def end(self) -> None:
        """After the partitions that wait already come no more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def fail(self, reason: str) -> None:
        """Ends all waits, and all partitions, with `reason`."""
        self._close(reason, lambda partition: partition.refuse(reason))

    def terminate(self) -> None:
        """No more rows are wanted: those on their way, and all to come, are skipped."""
        self._close(None, lambda partition: partition.drop())

    def close(self, reason: str) -> None:
        """The reader is gone: rows that are left are an error, unless it had terminated."""
        if not self.terminated:
            self.fail(reason)

    def _close(self, failure: str | None, end: Callable[[Any], None]) -> None:
        with self._changed:
            self._failure = self._failure or failure
            self.terminated = self.terminated or failure is None
            partitions = [*self._waiting, *([self._reading] if self._reading else [])]
            self._waiting.clear()
            self._changed.notify_all()
        for partition in partitions:
            end(partition)


class Partition:
    """Rows that one feed task sends. One thread reads; the session's thread learns the total."""

    def __init__(self, session: Session, message: Message):
        self.feed = message["feed"]
        self.index = message["index"]
        self.taken = 0  # rows that the program was given
        self.format = RowFormat(
            pickled=message["format"] == "pickle",
            batched=message["batched"],
            from_afar=session.from_afar,
        )
        self.keep = message["keep"]
        self.inference = message["mode"] == "inference"
        self._session = session
        self._lock = threading.Lock()
        self._entries = 0  # rows of batches, taken from the ring
        self._total: int | None = None
        self._open = 0  # batches that are not used up, and rows whose results are owed
        self._ended = False
        self._dropped = False
        self._told = time.monotonic()

    def read(self) -> Any:
        """The next batch, which counts as held; None at the partition's end.

        A pyarrow.RecordBatch; pickles are in a FeedBatch that lies in the ring until release().

        Raises:
            ConnectionError: the feed task died, or the partition was dropped meanwhile.
        """
        import pyarrow as pa

        try:
            kind, batch = self._session.read(in_place=self.format.pickled)
        except RuntimeError as error:
            if not self._dropped:
                raise
            raise ConnectionError("the partition was dropped") from error
        if kind != "batch":
            return None
        rows = batch if self.format.pickled else pa.record_batch(batch)
        with self._lock:
            self._entries += rows.num_rows
            self._open += 1
        return rows

    def release(self) -> None:
        """The last batch of pickles has been read: the feed task may write into its place."""
        if self.format.pickled:
            self._session.release()

    def hold(self, count: int) -> None:
        """The results of `count` more rows are owed."""
        with self._lock:
            self._open += count

    def settle(self, count: int) -> None:
        """`count` held batches are used up, or owed results are written."""
        with self._lock:
            self._open -= count
        now = time.monotonic()
        if now - self._told > _PROGRESS_S:
            self._told = now
            self._session.tell({"op": "progress"})
        self._end_if_complete()

    def set_total(self, entries: int) -> None:
        """The feed task has written its last row."""
        with self._lock:
            self._total = entries
        self._end_if_complete()

    def write_results(self, rows: Any) -> None:
        """Sends a pyarrow.RecordBatch back. Raises ConnectionError when the feed task is gone."""
        self._session.results.write(rows, _FOREVER_S)

    def _end_if_complete(self) -> None:
        with self._lock:
            if self._ended or self._open or self._entries != self._total:
                return
            self._ended = True
        if self.inference:
            self._session.results.flush(_FOREVER_S)
        self._session.tell({"op": "taken"})

    def refuse(self, reason: str) -> None:
        """The cluster failed: the feed task is told so."""
        self._drop({"error": reason})

    def drop(self) -> None:
        """The rest of the rows is not wanted."""
        self._drop({"op": "terminated"})

    def _drop(self, message: Message) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = self._dropped = True
        self._session.tell(message)
        self._session.close_rings()


class Replay:
    """The kept rows of a feed once more, `times` over; read like a Partition."""

    keep = False
    inference = False
    index = -1

    def __init__(self, spool: Spool, message: Message, report: Callable[[str], None]):
        times = message["times"]
        self.feed = message["feed"]
        self.taken = 0
        self._batches = (batch for _ in range(times) for batch in spool)
        self._left = times * len(spool)
        self._report = report
        self._told = time.monotonic()
        if not self._left:
            report("replayed")

    def read(self) -> Any:
        entry = next(self._batches, None)
        if entry is None:
            return None
        batch, self.format = entry
        return batch

    def release(self) -> None:
        """Nothing lies in a ring."""

    def settle(self, count: int) -> None:
        self._left -= count
        now = time.monotonic()
        if self._left == 0:
            self._report("replayed")
        elif now - self._told > _PROGRESS_S:
            self._told = now
            self._report("progress")

    def refuse(self, reason: str) -> None:
        """The driver knows of the failure already."""

    def drop(self) -> None:
        if self._left:
            self._report("replayed")


class Session:
    """One feed task's connection: a ring of rows, a ring of results, and messages."""

    def __init__(
        self,
        channel: Channel,
        put: Callable[[str, Partition], None],
        on_end: Callable[[Session], None],
        from_afar: bool,
    ):
        self.from_afar = from_afar
        self._channel = channel
        self._on_end = on_end
        self._put = put
        self._ring: Any = None
        self.results: Any = None
        self._current: Partition | None = None
        self._thread = threading.Thread(target=self._run, name="hearth-feed", daemon=True)

    def start(self) -> None:
        """Serves the connection until the task ends it."""
        self._thread.start()

    def end(self) -> None:
        """The program is over, so nobody reads any more."""
        self._channel.end()
        self._thread.join()
        self._channel.close()
        self._ring = self.results = None

    def _run(self) -> None:
        with suppress(EOFError, OSError, ValueError):
            while True:
                message, fds = self._channel.receive()
                self._handle(message, fds)
        self._on_end(self)

    def _handle(self, message: Message, fds: list[int]) -> None:
        from hearth.native._core import RingReader, RingWriter

        if message["op"] == "rings":
            self._ring = RingReader.attach(*fds[:2])
            self.results = RingWriter.attach(*fds[2:])
        elif message["op"] == "partition":
            self._current = Partition(self, message)
            self._put(message["queue"], self._current)
        elif message["op"] == "end" and self._current is not None:
            self._current.set_total(message["entries"])

    def read(self, in_place: bool) -> tuple[str, Any]:
        """The ring's next entry; the mark after a partition is one."""
        return self._ring.next(_FOREVER_S, in_place)

    def release(self) -> None:
        """Gives the room of the ring's last entry back."""
        self._ring.release()

    def tell(self, message: Message) -> None:
        """Never raises: a feed task that is gone needs to know nothing."""
        with suppress(OSError):
            self._channel.send(message)

    def close_rings(self) -> None:
        for ring in (self._ring, self.results):
            if ring is not None:
                ring.close()


class FeedServer:
    """All feeds of a node. `report` sends an event to the driver."""

    def __init__(self, queues: Iterable[str], report: Callable[[Message], None]):
        self.queues = {name: FeedQueue(name, report) for name in queues}
        self._report = report
        self._sessions: set[Session] = set()

    @property
    def terminated(self) -> bool:
        """Whether the program wanted no more rows of some feed."""
        return any(queue.terminated for queue in self.queues.values())

    def attach(self, sock: socket.socket, from_afar: bool) -> None:
        """Takes over a connection that was authenticated."""
        if from_afar:
            sock = relay.at_node(sock)
        put = lambda name, partition: self.queues[name].put(partition)  # noqa: E731
        session = Session(Channel(sock), put, self._sessions.discard, from_afar)
        self._sessions.add(session)
        session.start()

    def replay(self, message: Message) -> None:
        """Gives the kept rows of a feed again, and reports when they are taken."""
        queue = self.queues[message["queue"]]

        def report(event: str) -> None:
            self._report({"event": event, "feed": message["feed"]})

        queue.put(Replay(queue.spool, message, report))

    def end(self) -> None:
        for queue in self.queues.values():
            queue.end()

    def fail(self, reason: str) -> None:
        for queue in self.queues.values():
            queue.fail(reason)

    def close(self) -> None:
        """The main function has returned: no more rows are taken."""
        for queue in self.queues.values():
            queue.close("its main function has returned before all rows were taken")
        for session in list(self._sessions):
            session.end()
