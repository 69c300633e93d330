"""Frames of JSON, with descriptors, between the processes of a cluster, on authenticated sockets.

A frame is a 4-byte big-endian length and as many bytes of JSON. On a socket that others can reach
both sides first prove that they know the application's key; nothing is parsed before that.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import select
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import Any

MAX_FRAME_BYTES = 1 << 20
HANDSHAKE_TIMEOUT_S = 5.0

_MAGIC = b"HTF1"
_NONCE_BYTES = 32
_PROOF_BYTES = 32
_MAX_FDS = 8

Message = dict[str, Any]


class Channel:
    """Frames over one connected stream socket. One thread receives, any thread may send."""

    def __init__(self, sock: socket.socket):
        self._socket = sock
        self._sending = threading.Lock()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message, fds: tuple[int, ...] = (), data: bytes = b"") -> None:
        """Sends one frame; `data` follows it as it is. Raises OSError when the peer is gone."""
        body = json.dumps(message).encode()
        if len(body) > MAX_FRAME_BYTES:
            raise ValueError(f"a message of {len(body)} bytes is too long for the other process")
        frame = struct.pack(">I", len(body)) + body + data
        with self._sending:
            sent = socket.send_fds(self._socket, [frame], fds) if fds else 0
            self._socket.sendall(memoryview(frame)[sent:])

    def receive(self, timeout_s: float | None = None) -> tuple[Message, list[int]]:
        """The next frame and the descriptors that came with it, which the caller owns.

        Raises:
            EOFError: the peer closed the connection.
            TimeoutError: no frame began within `timeout_s` (None: no limit).
            ValueError: the frame is no JSON object, or too long.
        """
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        if not poller.poll(None if timeout_s is None else max(0, timeout_s) * 1000):
            raise TimeoutError(f"the other process sent nothing within {timeout_s} s")
        head, fds, _, _ = socket.recv_fds(self._socket, 4, _MAX_FDS)
        if not head:
            raise EOFError("the other process closed the connection")
        head += receive_exactly(self._socket, 4 - len(head))
        (length,) = struct.unpack(">I", head)
        if length > MAX_FRAME_BYTES:
            raise ValueError(f"a frame of {length} bytes is longer than {MAX_FRAME_BYTES}")
        message = json.loads(receive_exactly(self._socket, length))
        if not isinstance(message, dict):
            raise ValueError("a frame must be a JSON object")
        return message, fds

    def receive_data(self, count: int) -> bytes:
        """The bytes that follow a frame. Raises EOFError."""
        return receive_exactly(self._socket, count)

    def detach(self) -> int:
        """The socket's descriptor, which this object no longer owns."""
        return self._socket.detach()

    def end(self) -> None:
        """Ends the connection, and with it a receive() of another thread. Never raises."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends the connection and frees its descriptor, for which no thread may wait any more."""
        self.end()
        self._socket.close()


def receive_exactly(sock: socket.socket, count: int, deadline: float | None = None) -> bytes:
    """`count` bytes, all of them before `deadline` (of time.monotonic()).

    Raises:
        EOFError: the stream ends before.
        TimeoutError: the deadline is over, however many bytes came.
    """
    parts = bytearray()
    while len(parts) < count:
        if deadline is not None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("the other process took too long to say who it is")
            sock.settimeout(left_s)
        part = sock.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise EOFError("the other process closed the connection within a message")
        parts += part
    return bytes(parts)


def accept_handshake(sock: socket.socket, key: bytes) -> None:
    """The listening side: lets a peer in that knows `key`.

    Raises:
        PermissionError: it does not.
        OSError, EOFError: it went away or took longer than HANDSHAKE_TIMEOUT_S.
    """
    deadline = _handshake_deadline(sock)
    ours = os.urandom(_NONCE_BYTES)
    sock.sendall(_MAGIC + ours)
    answer = receive_exactly(sock, _NONCE_BYTES + _PROOF_BYTES, deadline)
    theirs, proof = answer[:_NONCE_BYTES], answer[_NONCE_BYTES:]
    if not hmac.compare_digest(proof, _proof(key, b"client", ours + theirs)):
        raise PermissionError("a connection was refused: its key is not this cluster's")
    sock.sendall(_proof(key, b"server", theirs + ours))
    sock.settimeout(None)


def offer_handshake(sock: socket.socket, key: bytes) -> None:
    """The connecting side. Raises PermissionError, OSError or EOFError as accept_handshake()."""
    deadline = _handshake_deadline(sock)
    greeting = receive_exactly(sock, len(_MAGIC) + _NONCE_BYTES, deadline)
    if not greeting.startswith(_MAGIC):
        raise PermissionError("the other side does not speak this cluster's protocol")
    theirs, ours = greeting[len(_MAGIC) :], os.urandom(_NONCE_BYTES)
    sock.sendall(ours + _proof(key, b"client", theirs + ours))
    proof = receive_exactly(sock, _PROOF_BYTES, deadline)
    if not hmac.compare_digest(proof, _proof(key, b"server", ours + theirs)):
        raise PermissionError("the other side does not know this cluster's key")
    sock.settimeout(None)


def _handshake_deadline(sock: socket.socket) -> float:
    """For the whole of it: a peer that sends byte by byte gets no more time than another."""
    sock.settimeout(HANDSHAKE_TIMEOUT_S)
    return time.monotonic() + HANDSHAKE_TIMEOUT_S


def _proof(key: bytes, side: bytes, nonces: bytes) -> bytes:
    return hmac.new(key, side + nonces, hashlib.sha256).digest()
