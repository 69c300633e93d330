"""Exchanges messages between the processes of a cluster, in the rendezvous's format.

A message is a JSON object, optionally followed by raw bytes; on a unix socket it can carry file
descriptors (docs/format_control.md). On a socket that other users can reach, both sides first prove
that they know the application's token; nothing is parsed before that.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any

from hearth.errors import invalid

HANDSHAKE_TIMEOUT_S = 5.0

Message = dict[str, Any]


def handshake_terms(token: str, service: str, rank: int = 0) -> Any:
    """Terms that both sides of a handshake must share; `rank` is the server's.

    Raises:
        ValueError: the token is not 64 hex digits.
    """
    from hearth.native._core import HandshakeTerms

    return HandshakeTerms(token, service, rank)


def feed_terms(token: str, node_id: int) -> Any:
    """Terms that a node and its feed tasks share; see handshake_terms()."""
    return handshake_terms(token, "feed", node_id)


class Channel:
    """Messages over a connected stream socket. Only one thread may receive; all other methods are
    thread-safe.

    Raises ConnectionError if the peer has disconnected, or the channel is closed.
    """

    def __init__(self, sock: socket.socket, peer: str = "the other process"):
        """Takes ownership of the socket; `peer` names the other side in errors."""
        from hearth.native._core import MessageChannel

        self._native = MessageChannel(sock.detach(), peer)

    def fileno(self) -> int:
        """The socket's descriptor; -1 when the channel is closed."""
        return self._native.fileno()

    def accept_handshake(self, terms: Any, timeout_s: float = HANDSHAKE_TIMEOUT_S) -> None:
        """Runs the listening side of the handshake: admits a peer with the same handshake_terms().

        Raises:
            PermissionError: its terms differ.
            ValueError: its bytes are not a handshake.
            OSError: it disconnected, or took longer than `timeout_s`.
        """
        self._native.accept_handshake(terms, timeout_s)

    def offer_handshake(self, terms: Any, timeout_s: float = HANDSHAKE_TIMEOUT_S) -> None:
        """Runs the connecting side of the handshake. Raises PermissionError and OSError like
        accept_handshake()."""
        self._native.offer_handshake(terms, timeout_s)

    def send(self, message: Message, fds: Sequence[int] = (), data: Any = b"") -> None:
        """Sends a message, followed by the raw bytes of `data`, any object with a buffer.

        Raises:
            OSError: the peer has disconnected.
            ValueError: the message is not JSON, or too long.
        """
        self._native.send(message, fds, data)

    def receive(
        self, timeout_s: float | None = None, descriptors: int = 0
    ) -> tuple[Message, list[int]]:
        """The next message and its descriptors, which the caller owns.

        `descriptors`: how many descriptors a message may carry; if it carries more, all are closed.

        Raises:
            EOFError: the peer closed the connection.
            OSError: the peer disconnected in the middle of a message.
            TimeoutError: no complete message arrived within `timeout_s` (None: no limit).
            ValueError: the message is malformed, or has too many descriptors.
        """
        received = self._native.receive(timeout_s)
        if received is None:
            raise EOFError("the other process closed the connection")
        message, fds = received
        if len(fds) > descriptors:
            for fd in fds:
                os.close(fd)
            raise invalid(
                f"got {len(fds)} descriptors with message '{message.get('op')}', expected "
                f"{descriptors}"
            )
        return received

    def receive_data(self, count: int) -> bytes:
        """The bytes that follow a message. Raises OSError if the peer disconnects first."""
        return self._native.receive_data(count)

    def detach(self) -> int:
        """Releases the socket's descriptor to the caller."""
        return self._native.detach()

    def end(self) -> None:
        """Shuts the connection down, which ends a receive() in another thread. Never raises."""
        self._native.end()

    def close(self) -> None:
        """Closes the connection and its descriptor. Idempotent, never raises."""
        self._native.close()
