"""A listening socket that admits only clients that know the token.

Used by a node's feed listener and the reservation server. The number of clients in the handshake is
limited; above the limit the oldest one is dropped, so silent clients cannot block others.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from hearth.cluster.channel import Channel

logger = logging.getLogger(__name__)

# Limit of unauthenticated clients per listener.
MAX_UNAUTHENTICATED = 32
# Limit of refusals that are logged; all are counted.
_LOGGED_REFUSALS = 10
# Pause after a failed accept(), e.g. out of descriptors.
_PAUSE_S = 0.05


class Acceptor:
    """A listener whose thread accepts connections until close(), in spite of errors.

    Each client whose handshake_terms() equal `terms` is served by a separate thread, which calls
    `admit` with the client's channel and closes the channel when `admit` returns. On a unix socket,
    a process of another user is refused before any byte is read.
    """

    def __init__(
        self, terms: Any, listener: socket.socket, admit: Callable[[Channel], None], name: str
    ):
        """`name`: this listener's name in messages."""
        self.refused = 0
        self._terms = terms
        self._listener = listener
        self._admit = admit
        self._name = name
        self._lock = threading.Lock()
        self._unauthenticated: dict[Channel, None] = {}  # oldest first
        self._closed = threading.Event()
        listener.listen(128)
        self._thread = threading.Thread(target=self._run, name="hearth-accept", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops listening; admitted peers stay connected. Idempotent."""
        self._closed.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._accept()
            except Exception as error:  # out of descriptors, threads or memory, or the client left
                logger.debug("%s did not accept a connection: %s", self._name, error)
                with self._lock:
                    self._end_oldest()
                self._closed.wait(_PAUSE_S)

    def _accept(self) -> None:
        sock, address = self._listener.accept()
        try:
            who = _name_of(sock, address)
            if not _is_same_user(sock):
                self._count_refusal(who, "it belongs to another user")
                return
            peer = Channel(sock, who)
        finally:
            sock.close()  # no effect once the channel owns the socket
        try:
            with self._lock:
                self._unauthenticated[peer] = None
                if len(self._unauthenticated) > MAX_UNAUTHENTICATED:
                    self._end_oldest()
            serve = threading.Thread(
                target=self._serve, args=(peer, who), name="hearth-handshake", daemon=True
            )
            serve.start()
        except BaseException:
            with self._lock:
                self._unauthenticated.pop(peer, None)
            peer.close()
            raise

    def _end_oldest(self) -> None:
        for oldest in self._unauthenticated:
            del self._unauthenticated[oldest]
            oldest.end()  # fails the handshake in its thread, which closes it
            return

    def _serve(self, peer: Channel, who: str) -> None:
        with closing(peer):
            try:
                peer.accept_handshake(self._terms)
            except Exception as error:
                self._count_refusal(who, str(error))
                return
            finally:
                with self._lock:
                    self._unauthenticated.pop(peer, None)
            try:
                self._admit(peer)
            except (OSError, EOFError) as error:
                logger.debug("%s disconnected from %s: %s", who, self._name, error)
            except Exception as error:  # the client sees its connection end
                text = f"{type(error).__name__}: {error}"
                self._log(f"{who} could not be served at {self._name}: {text}")

    def _count_refusal(self, who: str, reason: str) -> None:
        with self._lock:
            self.refused += 1
            logged = self.refused <= _LOGGED_REFUSALS
        if logged:
            self._log(f"{who} was refused at {self._name}: {reason}")

    def _log(self, text: str) -> None:
        with suppress(OSError):
            print(f"hearth: {text}", file=sys.stderr)


def _is_same_user(peer: socket.socket) -> bool:
    """Whether the client runs as this process's user; always True on TCP, where the user is
    unknown."""
    return peer.family != socket.AF_UNIX or _credentials(peer)[1] == os.geteuid()


def _credentials(peer: socket.socket) -> tuple[int, int]:
    """(process id, user id) of a unix socket's peer, reported by the kernel."""
    data = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    process, user, _ = struct.unpack("3i", data)
    return process, user


def _name_of(peer: socket.socket, address: object) -> str:
    if peer.family != socket.AF_UNIX:
        return str(address[0]) if isinstance(address, tuple) else str(address)
    process, user = _credentials(peer)
    return f"process {process} of user {user}"
