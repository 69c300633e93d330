"""Listens for connections of feed tasks: on a unix socket for this host, on a TCP port for others.

The supervisor owns it, so that it can report why a node has ended. Before any of a client's bytes
is parsed, the client proves that it knows the cluster's token, and that it is looking for this
node; then its connection is passed to the node.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hearth.cluster.acceptor import Acceptor
from hearth.cluster.channel import Channel, Message
from hearth.cluster.node.datasets.files import PartitionFiles
from hearth.spark.ports import FEED, first_free

# How long a client's request for the reason of a failure waits until the reason is known.
_REASON_WAIT_S = 3.0


def _listen(address: str, family: int, port: int) -> socket.socket:
    return socket.create_server((address, port), family=family)


class FeedListener:
    """A node's listeners, open until close(). Each authenticated connection is sent to `node` as
    {"op": "feed"}."""

    def __init__(
        self,
        terms: Any,
        node: Channel,
        on_error: Callable[[Message], None],
        address: str = "",
        ports: Sequence[int] = (0,),
        files: PartitionFiles | None = None,
    ):
        """`on_error`: called from many threads with a "feed_error" event for each failed feed.
        `terms`: feed_terms(). `address`: listen address for other hosts; "": none. `ports`:
        candidate ports there. `files`: the datasets' partition files.
        """
        self._node = node
        self._on_error = on_error
        self._files = files
        self._failure: str | None = None
        self._failed = threading.Event()
        self._terminated = False
        # A name in Linux's abstract namespace leaves no file, and is private to the container.
        self.name = f"hearth-{os.getpid()}-{secrets.token_hex(8)}"
        listeners = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)]
        listeners[0].bind("\0" + self.name)
        self.port = 0
        if address:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listen = partial(_listen, address, family)
            listeners.append(first_free(ports, FEED, listen))
            self.port = listeners[1].getsockname()[1]
        # Each listener limits its unauthenticated clients, so that remote ones cannot block local
        # ones.
        self._acceptors = [self._open(terms, listener) for listener in listeners]

    @property
    def refused(self) -> int:
        """How many connections were refused."""
        return sum(acceptor.refused for acceptor in self._acceptors)

    def set_failure(self, reason: str) -> None:
        """Sends `reason` to every client from now on; reasons after the first are ignored."""
        self._failure = self._failure or reason
        self._failed.set()

    def set_terminated(self) -> None:
        """Tells clients from now on that the program has returned and needs no more rows."""
        self._terminated = True

    def close(self) -> None:
        """Stops accepting connections."""
        for acceptor in self._acceptors:
            acceptor.close()

    def _open(self, terms: Any, listener: socket.socket) -> Acceptor:
        from_remote = listener.family != socket.AF_UNIX
        return Acceptor(terms, listener, partial(self._admit, from_remote), "a node's listener")

    def _admit(self, from_remote: bool, channel: Channel) -> None:
        greeting, _ = channel.receive(_REASON_WAIT_S)
        if greeting.get("op") == "why":
            self._failed.wait(_REASON_WAIT_S)
            channel.send({"error": self._failure or ""})
        elif greeting.get("op") == "timeout":
            self._report(greeting, str(greeting.get("text")), timeout=True)
        elif greeting.get("op") == "dataset" and self._files is not None:
            if self._failure is not None and not self._files.over:
                channel.send({"error": self._failure})
            else:
                self._files.serve(channel, greeting, from_remote)
        elif self._failure is not None:
            try:  # report first: the driver must know the reason before the task fails
                self._report(greeting, self._failure, timeout=False)
            finally:
                channel.send({"error": self._failure})
        elif self._terminated:
            channel.send({"op": "terminated"})
        else:
            channel.send({"op": "welcome"})
            self._node.send({"op": "feed", "from_remote": from_remote}, fds=(channel.fileno(),))
            os.close(channel.detach())  # the node owns the connection now

    def _report(self, greeting: Message, text: str, timeout: bool) -> None:
        """Reports to the driver at once, before Spark retries the feed task."""
        feed = str(greeting.get("feed"))
        self._on_error({"event": "feed_error", "feed": feed, "text": text, "timeout": timeout})
