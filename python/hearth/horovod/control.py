"""Connections from every rank to rank 0's Coordinator.

Both ends authenticate with the job's key before a message is read.
"""

from __future__ import annotations

import queue
import secrets
import socket
import threading
import time
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any

from hearth.cluster.acceptor import Acceptor
from hearth.cluster.channel import Channel, handshake_terms
from hearth.errors import DeadlineExceededError, UnavailableError
from hearth.horovod.coordinator import Coordinator, Message
from hearth.ranks.group import Rendezvous, derived_key
from hearth.ranks.place import Place
from hearth.spark.links import mesh_ports
from hearth.spark.ports import MESH, first_free

_SERVICE = "horovod"
# Pause before a rank connects again: if many ranks connect at once, rank 0 may drop some.
_RETRY_PAUSE_S = 0.1


def _terms(rendezvous: Rendezvous, nonce: str) -> Any:
    """The terms of both ends' handshake, which contain the nonce that rank 0 publishes."""
    token = derived_key(rendezvous.key, nonce) if rendezvous.key else nonce
    return handshake_terms(token, _SERVICE)


class Leader:
    """Rank 0's end of the connections: the coordinator, and a connection to each other rank."""

    def __init__(self, place: Place, name: str, identity: str, timeout_s: float):
        """Returns once all ranks have connected. `name`: the rendezvous' name.

        Raises:
            TimeoutError: names the missing ranks.
        """
        self._world = place.world
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._channels: dict[int, Channel] = {}
        self._hosts = {0: identity}
        self._changed = threading.Condition()
        self._coordinator: Future[Coordinator] = Future()  # cancelled if a rank is missing
        self._acceptor: Acceptor | None = None
        try:
            if place.world > 1:
                self._listen(place.rendezvous_of(name))
                with self._changed:
                    self._changed.wait_for(lambda: len(self._hosts) == place.world, timeout_s)
            if missing := [r for r in range(place.world) if r not in self._hosts]:
                raise DeadlineExceededError(
                    f"ranks {missing} did not call init() within {timeout_s:g} s"
                )
        except BaseException:  # including an interrupt
            self.close()
            raise
        self.hosts = [self._hosts[r] for r in range(place.world)]
        sends: dict[int, Any] = {r: channel.send for r, channel in self._channels.items()}
        self._coordinator.set_result(Coordinator({**sends, 0: self._messages.put}))
        for channel in self._channels.values():
            with suppress(OSError):  # the connection's thread reports the loss
                channel.send({"hosts": self.hosts})

    def send(self, message: Message) -> None:
        """Passes a message of rank 0 to the coordinator."""
        self._coordinator.result().take(0, message)

    def receive(self) -> Message | None:
        """The coordinator's next message; None after close()."""
        return self._messages.get()

    def close(self) -> None:
        """Closes all connections. Idempotent."""
        self._messages.put(None)
        if self._acceptor is not None:
            self._acceptor.close()
        if not self._coordinator.cancel():
            self._coordinator.result().close()
        for channel in self._channels.values():
            channel.end()

    def _listen(self, rendezvous: Rendezvous) -> None:
        host = rendezvous.host or "127.0.0.1"
        nonce = secrets.token_hex(32)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = first_free(
            mesh_ports(), MESH, lambda port: socket.create_server((host, port), family=family)
        )
        port = listener.getsockname()[1]
        terms = _terms(rendezvous, nonce)
        self._acceptor = Acceptor(terms, listener, self._serve, "the listener of horovod's rank 0")
        rendezvous.publish(f"{host} {port} {nonce}")

    def _serve(self, channel: Channel) -> None:
        hello, _ = channel.receive()
        rank = int(hello["rank"])
        with self._changed:
            self._channels[rank] = channel
            self._hosts[rank] = str(hello["host"])
            self._changed.notify_all()
        try:
            coordinator = self._coordinator.result()
        except CancelledError:
            return
        reason, lost = "was lost", True
        try:
            while True:
                message, _ = channel.receive()
                if "bye" in message:
                    reason, lost = "has called shutdown() or ended", False
                    return
                coordinator.take(rank, message)
        except (OSError, EOFError):
            pass
        finally:
            coordinator.remove(rank, reason, lost)


class Follower:
    """The connection of a rank other than 0 to the coordinator."""

    def __init__(self, place: Place, name: str, identity: str, timeout_s: float):
        """Returns once all ranks have connected. Raises OSError if rank 0 cannot be reached."""
        rendezvous = place.rendezvous_of(name)
        host, port, nonce = rendezvous.read().split(" ")
        terms = _terms(rendezvous, nonce)
        self._channel = _connected(host, int(port), terms, timeout_s)
        self._channel.send({"rank": place.rank, "host": identity})
        try:
            welcome, _ = self._channel.receive(timeout_s)
        except EOFError:
            raise UnavailableError("rank 0 ended before all ranks had called init()") from None
        self.hosts: list[str] = welcome["hosts"]

    def send(self, message: Message) -> None:
        """Sends a message to the coordinator. Raises OSError if rank 0 has ended."""
        self._channel.send(message)

    def receive(self) -> Message | None:
        """The coordinator's next message; None once rank 0 has ended, or after close()."""
        try:
            return self._channel.receive()[0]
        except (OSError, EOFError):
            return None

    def close(self) -> None:
        """Reports that this rank leaves. Idempotent."""
        with suppress(OSError, ValueError):
            self._channel.send({"bye": True})
        self._channel.end()


def _connected(host: str, port: int, terms: Any, timeout_s: float) -> Channel:
    limit = time.monotonic() + timeout_s
    while True:
        channel = None
        try:
            left = max(0.1, limit - time.monotonic())
            channel = Channel(socket.create_connection((host, port), left), "rank 0")
            channel.offer_handshake(terms)
            return channel
        except PermissionError:
            raise
        except OSError:
            if channel is not None:
                channel.close()
            if time.monotonic() > limit:
                raise
            time.sleep(_RETRY_PAUSE_S)
