"""Messages between the processes of a cluster: rendezvous' frames and handshake, for Python.

A message is a dict that JSON can carry; descriptors go with it on a unix socket, raw bytes behind
it (docs/format_control.md). On a socket that others can reach both sides first prove that they know
the application's token; nothing is parsed before that.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any

HANDSHAKE_TIMEOUT_S = 5.0

Message = dict[str, Any]


def handshake_terms(token: str, service: str, rank: int = 0) -> Any:
    """What both sides of a handshake must have in common; `rank` is the server's.

    Raises:
        ValueError: the token has not 64 hex digits.
    """
    from hearth.native._core import HandshakeTerms

    return HandshakeTerms(token, service, rank)


def feed_terms(token: str, node_id: int) -> Any:
    """What a node and its feed tasks must have in common, as handshake_terms()."""
    return handshake_terms(token, "feed", node_id)


class Channel:
    """Messages over one connected stream socket. One thread receives, any thread may use the rest.

    Raises ConnectionError where the peer is gone, or the channel is closed.
    """

    def __init__(self, sock: socket.socket, peer: str = "the other process"):
        """Takes the socket over; errors call the other side `peer`."""
        from hearth.native._core import MessageChannel

        self._native = MessageChannel(sock.detach(), peer)

    def fileno(self) -> int:
        """The socket's descriptor; -1 when the channel is closed."""
        return self._native.fileno()

    def accept_handshake(self, terms: Any, timeout_s: float = HANDSHAKE_TIMEOUT_S) -> None:
        """The listening side: lets a peer in that has the same handshake_terms().

        Raises:
            PermissionError: it has others.
            ValueError: its bytes are not a handshake.
            OSError: it went away, or took longer than `timeout_s`.
        """
        self._native.accept_handshake(terms, timeout_s)

    def offer_handshake(self, terms: Any, timeout_s: float = HANDSHAKE_TIMEOUT_S) -> None:
        """The connecting side. Raises PermissionError or OSError as accept_handshake()."""
        self._native.offer_handshake(terms, timeout_s)

    def send(self, message: Message, fds: Sequence[int] = (), data: Any = b"") -> None:
        """Sends a message; `data`, an object with a buffer, follows it as it is.

        Raises:
            OSError: the peer is gone.
            ValueError: the message is not JSON, or too long.
        """
        self._native.send(message, fds, data)

    def receive(
        self, timeout_s: float | None = None, descriptors: int = 0
    ) -> tuple[Message, list[int]]:
        """The next message and the descriptors that came with it, which the caller owns.

        `descriptors`: how many may come; where there are more, all are closed.

        Raises:
            EOFError: the peer closed the connection.
            OSError: it did so within a message.
            TimeoutError: no whole message came within `timeout_s` (None: no limit).
            ValueError: what came is not a message, or has too many descriptors.
        """
        received = self._native.receive(timeout_s)
        if received is None:
            raise EOFError("the other process closed the connection")
        message, fds = received
        if len(fds) > descriptors:
            for fd in fds:
                os.close(fd)
            raise ValueError(
                f"{len(fds)} descriptors came with '{message.get('op')}', at most {descriptors} may"
            )
        return received

    def receive_data(self, count: int) -> bytes:
        """The bytes that follow a message. Raises OSError where the peer is gone before."""
        return self._native.receive_data(count)

    def detach(self) -> int:
        """The socket's descriptor, which this object no longer owns."""
        return self._native.detach()

    def end(self) -> None:
        """Ends the connection, and with it a receive() of another thread. Never raises."""
        self._native.end()

    def close(self) -> None:
        """Ends the connection and frees its descriptor. Idempotent, never raises."""
        self._native.close()
