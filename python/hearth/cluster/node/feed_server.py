"""The node's side of the feed: connections of feed tasks, whose partitions go into named queues.

A feed task keeps one connection, with a ring each way, for all partitions it brings. Session
threads only announce partitions; the core's queue counts them, and the thread that wants the rows
takes them from the ring.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from hearth.cluster import relay
from hearth.cluster.channel import Channel, Message
from hearth.cluster.errors import returned
from hearth.cluster.node.datasets.program import NodeDatasets
from hearth.cluster.node.meetings import Meetings
from hearth.cluster.node.reports.program import ProgramReports
from hearth.cluster.node.split_requests import SplitRequests
from hearth.files.local_folders import spill_folder

# A program may report each step as safe; the driver need not hear of all.
_COMMIT_S = 1.0


class Session:
    """One feed task's connection: a ring of rows, a ring of results, and messages."""

    def __init__(self, channel: Channel, server: FeedServer, from_afar: bool):
        self._channel = channel
        self._server = server
        self._from_afar = from_afar
        self._link: Any = None  # the rings
        self._queue: Any = None
        self._partition: Any = None  # the one that was announced last
        self._thread = threading.Thread(target=self._run, name="hearth-feed", daemon=True)

    def start(self) -> None:
        """Serves the connection until the task ends it. Raises what Thread.start() does, closed."""
        try:
            self._thread.start()
        except BaseException:
            self._channel.close()
            raise

    def beat(self) -> None:
        """Sends the task a sign of life."""
        _tell(self._channel, {"op": "alive"})

    def end(self) -> None:
        """The program is over, so nobody reads any more."""
        self._channel.end()
        self._thread.join()
        self._channel.close()
        self._link = self._partition = None

    def _run(self) -> None:
        try:
            while True:
                message, fds = self._channel.receive(descriptors=4)
                self._handle(message, fds)
        except (EOFError, OSError):
            pass  # the task is gone, or done
        except Exception as error:  # whoever waits, at either end, must hear of it
            text = f"a feed's connection failed: {type(error).__name__}: {error}"
            _tell(self._channel, {"error": text})
            self._channel.end()
            if self._link is not None:
                self._link.close()
        finally:
            if self._partition is not None:
                self._queue.lose(self._partition)
            self._server.forget(self)

    def _handle(self, message: Message, fds: list[int]) -> None:
        from hearth.native._core import FeedLink

        rings = message.get("op") == "rings"
        if len(fds) != (4 if rings else 0):
            for fd in fds:
                os.close(fd)
            raise ValueError(
                f"{len(fds)} descriptors came with '{message.get('op')}', not {4 if rings else 0}; "
                "where fewer came, the node may have no more of them: raise its limit (ulimit -n)"
            )
        if rings:
            rows, results = tuple(fds[:2]), tuple(fds[2:])
            self._link = FeedLink(rows, results, self._from_afar, partial(_tell, self._channel))
        elif message["op"] == "partition":
            self._queue = self._server.queues[message["queue"]]
            self._partition = self._queue.announce(self._link, json.dumps(message))
        elif message["op"] == "end" and self._partition is not None:
            self._partition.set_total(message["entries"])


def _tell(channel: Channel, message: Message) -> None:
    """Never raises: if the feed task is gone, there is nobody to tell."""
    with suppress(OSError):
        channel.send(message)


class FeedServer:
    """All feeds of a node. `report` sends an event to the driver."""

    def __init__(
        self,
        queues: Iterable[str],
        report: Callable[[Message], None],
        datasets: Sequence[str] = (),
        reports: ProgramReports | None = None,
    ):
        from hearth.native._core import FeedQueue

        folder = partial(spill_folder, os.getpid())  # the nodes of a host use its disks in turn
        self.queues = {name: FeedQueue(report, folder) for name in queues}
        self.report = report
        self.failed = threading.Event()  # a node of the cluster has
        self.files = SplitRequests(report)
        self.meetings = Meetings(report)
        self.datasets = NodeDatasets(datasets)
        self.reports = reports or ProgramReports()
        self._sessions: set[Session] = set()
        self._committed_at = -_COMMIT_S

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
            try:
                session.start()
            except BaseException:
                self.forget(session)
                raise
        except Exception as error:  # of memory, threads or descriptors; the task hears of the end
            print(f"hearth: a feed's connection could not be accepted: {error}", file=sys.stderr)
            sock.close()

    def beat(self) -> None:
        """Shows the feed tasks that the program goes on; see FeedSpec.beat_s."""
        for session in list(self._sessions):
            session.beat()

    def forget(self, session: Session) -> None:
        """Its connection is over."""
        self._sessions.discard(session)

    def answer(self, message: Message) -> None:
        """The driver's answer to a partition's claim."""
        text = json.dumps(message)
        if any(queue.answer(text) for queue in self.queues.values()):
            return
        if message["answer"] == "begin":  # whoever asked is gone
            given = {key: message[key] for key in ("batches", "hash", "rows")}
            where = {"feed": message["feed"], "partition": message["partition"]}
            claim = {"event": "claim_end", "claim": message["claim"], "state": "broken"}
            self.report({**claim, **where, **given})

    def note_commit(self) -> None:
        """The program has made a checkpoint; reports it to the driver, once in a while."""
        now = time.monotonic()
        if now - self._committed_at >= _COMMIT_S:
            self._committed_at = now
            self.report({"event": "commit"})

    def replay(self, message: Message) -> None:
        """Gives the kept rows of a feed again, and reports when they are taken."""
        queue = self.queues[message["queue"]]
        queue.replay(message["feed"], message["kept"], message["times"])

    def end(self) -> None:
        for queue in self.queues.values():
            queue.end()

    def fail(self, reason: str) -> None:
        self.failed.set()
        self.files.fail(reason)
        self.meetings.fail(reason)
        self.datasets.fail(reason)
        for queue in self.queues.values():
            queue.fail(reason)

    def close(self, where: str = "the node") -> None:
        """The main function of the node at `where` has returned: no more rows are taken."""
        for queue in self.queues.values():
            queue.close(returned(where))
        for session in list(self._sessions):
            session.end()
