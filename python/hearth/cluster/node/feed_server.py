"""The node's side of the feed: connections of feed tasks, whose partitions go into named queues.

A feed task keeps one connection, with a ring in each direction, for all its partitions. Session
threads only announce partitions; the core's queue counts them, and the thread that consumes the
rows reads them from the ring.
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
from hearth.cluster.node.key_value_store import KeyValueStore
from hearth.cluster.node.reports.program_reports import ProgramReports
from hearth.cluster.node.split_requests import SplitRequests
from hearth.errors import invalid
from hearth.files.local_folders import spill_folder

# Minimum interval of commit reports to the driver, as a program may commit at each step.
_COMMIT_S = 1.0


class Session:
    """One feed task's connection: a ring of rows, a ring of results, and messages."""

    def __init__(self, channel: Channel, server: FeedServer, from_remote: bool):
        self._channel = channel
        self._server = server
        self._from_remote = from_remote
        self._link: Any = None  # the rings
        self._queue: Any = None
        self._partition: Any = None  # the partition announced last
        self._thread = threading.Thread(target=self._run, name="hearth-feed", daemon=True)

    def start(self) -> None:
        """Starts a thread that serves the connection until the feed task closes it. If the thread
        cannot start, closes the connection and raises."""
        try:
            self._thread.start()
        except BaseException:
            self._channel.close()
            raise

    def beat(self) -> None:
        """Sends the task a heartbeat."""
        _send(self._channel, {"op": "alive"})

    def end(self) -> None:
        """Ends the session: the program has returned and reads no more rows."""
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
            pass  # the task has ended
        except Exception as error:  # waiting threads on both sides must be notified
            text = f"a feed's connection failed: {type(error).__name__}: {error}"
            _send(self._channel, {"error": text})
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
            raise invalid(
                f"got {len(fds)} descriptors with message '{message.get('op')}', expected "
                f"{4 if rings else 0}; if there are too few, the node may have reached its limit "
                "of open files: raise it (ulimit -n)"
            )
        if rings:
            rows, results = tuple(fds[:2]), tuple(fds[2:])
            self._link = FeedLink(rows, results, self._from_remote, partial(_send, self._channel))
        elif message["op"] == "partition":
            self._queue = self._server.queues[message["queue"]]
            self._partition = self._queue.announce(self._link, json.dumps(message))
        elif message["op"] == "end" and self._partition is not None:
            self._partition.set_total(message["entries"])


def _send(channel: Channel, message: Message) -> None:
    """Sends a message; ignores a feed task that has ended."""
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

        # The process id selects the disk, so that a host's nodes use different disks.
        folder = partial(spill_folder, os.getpid())
        self.queues = {name: FeedQueue(report, folder) for name in queues}
        self.report = report
        # Set once a node has failed, or no node is left that could report a cause.
        self.cause_known = threading.Event()
        self.ended_before = ""  # nodes that had ended when this one lost a rank
        self.files = SplitRequests(report)
        self.store = KeyValueStore(report)
        self.datasets = NodeDatasets(datasets)
        self.reports = reports or ProgramReports()
        self._sessions: set[Session] = set()
        self._committed_at = -_COMMIT_S

    @property
    def terminated(self) -> bool:
        """Whether the program has terminated a feed."""
        return any(queue.terminated for queue in self.queues.values())

    def attach(self, sock: socket.socket, from_remote: bool) -> None:
        """Takes ownership of an authenticated connection; closes it on errors, never raises."""
        try:
            if from_remote:
                sock = relay.at_node(sock)
            session = Session(Channel(sock), self, from_remote)
            self._sessions.add(session)
            try:
                session.start()
            except BaseException:
                self.forget(session)
                raise
        except (
            Exception
        ) as error:  # e.g. out of memory, threads or descriptors; the task sees the connection end
            print(f"hearth: cannot accept a feed's connection: {error}", file=sys.stderr)
            sock.close()

    def beat(self) -> None:
        """Sends heartbeats to the feed tasks; see FeedSpec.beat_s."""
        for session in list(self._sessions):
            session.beat()

    def forget(self, session: Session) -> None:
        """Drops a session whose connection has ended."""
        self._sessions.discard(session)

    def answer(self, message: Message) -> None:
        """Handles the driver's answer to a partition's claim."""
        text = json.dumps(message)
        if any(queue.answer(text) for queue in self.queues.values()):
            return
        if message["answer"] == "begin":  # the claiming session has ended
            given = {key: message[key] for key in ("batches", "hash", "rows")}
            where = {"feed": message["feed"], "partition": message["partition"]}
            claim = {"event": "claim_end", "claim": message["claim"], "state": "broken"}
            self.report({**claim, **where, **given})

    def note_commit(self) -> None:
        """Records a checkpoint of the program; reports it to the driver at intervals."""
        now = time.monotonic()
        if now - self._committed_at >= _COMMIT_S:
            self._committed_at = now
            self.report({"event": "commit"})

    def replay(self, message: Message) -> None:
        """Replays the stored rows of a feed, and reports when they are consumed."""
        queue = self.queues[message["queue"]]
        queue.replay(message["feed"], message["kept"], message["times"])

    def end(self) -> None:
        """Ends all queues: no more rows will come."""
        for queue in self.queues.values():
            queue.end()

    def await_cause(self, timeout_s: float) -> None:
        """After an error that a lost rank may have caused, waits until another node reports the
        cause, or until no node is left that could report it."""
        self.report({"event": "awaits_cause"})
        self.cause_known.wait(timeout_s)

    def no_cause(self, ended: str) -> None:
        """Ends await_cause(): all other nodes are waiting too, or have ended. `ended`: names of the
        nodes that have ended."""
        self.ended_before = ended
        self.cause_known.set()

    def fail(self, reason: str) -> None:
        """Makes every consumer and feeder raise an error with this reason."""
        self.cause_known.set()
        self.files.fail(reason)
        self.store.fail(reason)
        self.datasets.fail(reason)
        for queue in self.queues.values():
            queue.fail(reason)

    def close(self, where: str = "the node") -> None:
        """Ends all feeds after the main function has returned; `where` names the node in errors."""
        for queue in self.queues.values():
            queue.close(returned(where))
        for session in list(self._sessions):
            session.end()
