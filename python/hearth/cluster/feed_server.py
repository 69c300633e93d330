"""The node's side of the feed: connections of feed tasks, partitions waiting in named queues.

A feed task keeps one connection, with a ring each way, for all partitions it brings. Session
threads only announce partitions; the rows are taken from the ring by the thread that wants them.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from hearth.cluster import relay
from hearth.cluster.channel import Channel, Message
from hearth.cluster.errors import ClusterError
from hearth.cluster.feed_partition import Partition, Replay
from hearth.cluster.feed_progress import RowCount
from hearth.cluster.spool import Spool

_FOREVER_S = 1e9
_ENDS = ("taken", "terminated")


class FeedQueue:
    """The partitions of one feed in the order they came; then the end. Any thread may use it."""

    def __init__(self, name: str, report: Callable[[Message], None]):
        self.name = name
        self.rows = RowCount(report)
        self._changed = threading.Condition()
        self._asking: dict[int, Partition] = {}  # by claim: those that may not come yet
        self._waiting: deque[Any] = deque()
        self._reading: Any = None
        self._ended = False
        self._failure: str | None = None
        self.terminated = False
        self._spools: dict[str, Spool] = {}  # by feed job

    def ask(self, partition: Partition) -> None:
        """Adds a partition once the driver lets it; or refuses it as put()."""
        with self._changed:
            wanted = self._wants(partition)
            if wanted:
                self._asking[partition.claim] = partition
        if wanted:
            partition.ask()

    def put(self, partition: Any) -> None:
        """Adds a partition, or refuses it where no more rows are wanted."""
        with self._changed:
            if self._wants(partition):
                self._waiting.append(partition)
                self._changed.notify_all()

    def _wants(self, partition: Any) -> bool:
        if self.terminated:
            partition.drop()
        elif self._failure or self._ended:
            partition.refuse(self._failure or "the feed has been ended by shutdown()")
        else:
            return True
        return False

    def answer(self, message: Message) -> bool:
        """Takes the driver's answer to a claim; whether it was this queue's."""
        answer = message["answer"]
        with self._changed:
            partition = self._asking.get(message["claim"])
            if partition is not None and answer != "wait":
                del self._asking[message["claim"]]
        if partition is None:
            return False
        if answer == "wait":
            partition.wait()
        elif answer == "begin":
            partition.begin(message)
            self.put(partition)
        elif answer in _ENDS:
            partition.conclude(answer)
        else:
            partition.refuse("the feed job of these rows is over")
        return True

    def lose(self, partition: Partition) -> None:
        """Its feed task is gone: it is taken out, unless it is being read."""
        with self._changed:
            asked = self._asking.pop(partition.claim, None) is not None
            if partition in self._waiting:
                self._waiting.remove(partition)
            elif not asked:
                return
        partition.lose()

    def spool(self, feed: str) -> Spool:
        """Where the rows of a feed job are kept for its later epochs."""
        return self._spools.setdefault(feed, Spool())

    def take_spool(self, feed: str) -> Spool:
        """The same, for the last time; empty where nothing was kept."""
        return self._spools.pop(feed, None) or Spool()

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
            partitions = [*self._asking.values(), *self._waiting]
            partitions += [self._reading] if self._reading else []
            self._asking.clear()
            self._waiting.clear()
            self._changed.notify_all()
        for partition in partitions:
            end(partition)


class Session:
    """One feed task's connection: a ring of rows, a ring of results, and messages."""

    def __init__(self, channel: Channel, server: FeedServer, from_afar: bool):
        self.from_afar = from_afar
        self._channel = channel
        self._server = server
        self._ring: Any = None
        self.results: Any = None
        self._current: Partition | None = None
        self._queue: FeedQueue | None = None
        self._broken = False
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
        try:
            while True:
                message, fds = self._channel.receive()
                self._handle(message, fds)
        except (EOFError, OSError):
            pass  # the task is gone, or done
        except Exception as error:  # whoever waits, at either end, must hear of it
            self._broken = True
            self.tell({"error": f"a feed's connection failed: {type(error).__name__}: {error}"})
            self._channel.end()
            self.close_rings()
        finally:
            if self._current is not None and self._queue is not None:
                self._queue.lose(self._current)
            self._server.forget(self)

    def _handle(self, message: Message, fds: list[int]) -> None:
        from hearth.native._core import RingReader, RingWriter

        if message["op"] == "rings":
            self._ring = RingReader.attach(*fds[:2])
            self.results = RingWriter.attach(*fds[2:])
        elif message["op"] == "partition":
            self._queue = self._server.queues[message["queue"]]
            self._current = Partition(self, message, self._server.report)
            (self._queue.ask if self._current.fenced else self._queue.put)(self._current)
        elif message["op"] == "end" and self._current is not None:
            self._current.set_total(message["entries"])

    def read(self, in_place: bool) -> tuple[str, Any]:
        """The ring's next entry; the mark after a partition is one.

        Raises:
            ConnectionError: the feed task is gone, or its connection is of no use any more.
        """
        try:
            return self._ring.next(_FOREVER_S, in_place)
        except RuntimeError as error:
            if not self._broken:
                raise
            raise ConnectionError("the feed's connection is over") from error

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
        self.report = report
        self._sessions: set[Session] = set()

    @property
    def terminated(self) -> bool:
        """Whether the program wanted no more rows of some feed."""
        return any(queue.terminated for queue in self.queues.values())

    def attach(self, sock: socket.socket, from_afar: bool) -> None:
        """Takes over a connection that was authenticated; never raises, but closes it."""
        try:
            if from_afar:
                sock = relay.at_node(sock)
            session = Session(Channel(sock), self, from_afar)
            self._sessions.add(session)
            session.start()
        except Exception as error:  # of memory, threads or descriptors; the task hears of the end
            print(f"hearth: a feed's connection could not be taken: {error}", file=sys.stderr)
            sock.close()

    def forget(self, session: Session) -> None:
        """Its connection is over."""
        self._sessions.discard(session)

    def answer(self, message: Message) -> None:
        """The driver's answer to a partition's claim."""
        if any(queue.answer(message) for queue in self.queues.values()):
            return
        if message["answer"] == "begin":  # whoever asked is gone
            given = {key: message[key] for key in ("batches", "hash", "rows")}
            where = {"feed": message["feed"], "partition": message["partition"]}
            claim = {"event": "claim_end", "claim": message["claim"], "state": "broken"}
            self.report({**claim, **where, **given})

    def replay(self, message: Message) -> None:
        """Gives the kept rows of a feed again, and reports when they are taken."""
        queue = self.queues[message["queue"]]

        def report(event: str, **more: Any) -> None:
            self.report({"event": event, "feed": message["feed"], **more})

        queue.put(Replay(queue.take_spool(message["kept"]), message, report))

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
