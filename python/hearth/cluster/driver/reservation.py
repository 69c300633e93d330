"""An authenticated server where processes register, wait for each other, and request a stop.

Nodes of TFCluster.run register with hearth.native._core.Coordinator instead. This is the cluster's
`server`, through which another process ends a stream: Client(addr).request_stop(). The server
starts to listen when the program reads `cluster_meta["server_addr"]` or feeds a stream.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from hearth.cluster.acceptor import Acceptor
from hearth.cluster.channel import Channel, Message, handshake_terms
from hearth.errors import (
    DeadlineExceededError,
    HearthError,
    PermissionDeniedError,
    ResourceExhaustedError,
    invalid,
)
from hearth.spark import addresses
from hearth.spark.dynamic_allocation import Setting
from hearth.spark.ports import COORDINATOR, ports_of

TFOS_SERVER_PORT = "TFOS_SERVER_PORT"
TFOS_SERVER_HOST = "TFOS_SERVER_HOST"
# Environment variable with the server's key for clients in other processes; set by the program that
# starts these processes.
KEY_VARIABLE = "TFOS_SERVER_KEY"

_MAX_CLIENTS = 512  # concurrent authenticated clients
_REPLY_TIMEOUT_S = 30.0

# Keys of this process's servers, by port.
_keys: dict[int, bytes] = {}


class Reservations:
    """The reservations of `required` nodes. Thread-safe."""

    def __init__(self, required: int):
        self.required = required
        self.reservations: list[Any] = []
        self._changed = threading.Condition()

    def add(self, meta: Any) -> None:
        """Adds a reservation and wakes waiting threads."""
        with self._changed:
            self.reservations.append(meta)
            self._changed.notify_all()

    def done(self) -> bool:
        """Whether all reservations have arrived."""
        with self._changed:
            return len(self.reservations) >= self.required

    def get(self) -> list[Any]:
        """A copy of the reservations so far."""
        with self._changed:
            return list(self.reservations)

    def remaining(self) -> int:
        """The number of nodes that have not reserved yet."""
        with self._changed:
            return self.required - len(self.reservations)

    def wait(self, timeout_s: float) -> bool:
        """Waits for all reservations; returns whether they have arrived."""
        with self._changed:
            return self._changed.wait_for(
                lambda: len(self.reservations) >= self.required, timeout_s
            )


class MessageSocket:
    """The sending and receiving of messages between Client and Server after their handshake; `sock`
    is a Channel."""

    def receive(self, sock: Channel) -> Message:
        """The next message. Raises EOFError."""
        return sock.receive()[0]

    def send(self, sock: Channel, msg: Message) -> None:
        """Sends a message."""
        sock.send(msg)


class Server(MessageSocket):
    """A server that collects `count` reservations, with a thread per client."""

    def __init__(
        self, count: int, *, hosts: tuple[str, str] = ("", ""), ports: Sequence[int] | None = None
    ):
        """`hosts`: (listen address, host for clients); TFOS_SERVER_HOST takes precedence. `ports`:
        candidate ports; TFOS_SERVER_PORT takes precedence.
        """
        assert count > 0, "Expected reservation count to be greater than zero"
        self.reservations = Reservations(count)
        self.done = False
        self.key = secrets.token_bytes(32)
        self._stopped = threading.Event()
        self._hosts = hosts
        self._ports = ports
        self._acceptor: Acceptor | None = None
        self._port = 0
        self._clients = threading.BoundedSemaphore(_MAX_CLIENTS)

    def start(self) -> tuple[str, int]:
        """Starts listening; returns (host, port)."""
        listener = self.start_listening_socket()
        host = os.environ.get(TFOS_SERVER_HOST) or self._hosts[1] or self.get_server_ip()
        address = (host, listener.getsockname()[1])
        self._port = address[1]
        _keys[self._port] = self.key
        self._acceptor = Acceptor(_terms(self.key), listener, self._serve, "the reservation server")
        return address

    def start_listening_socket(self) -> socket.socket:
        """A socket that listens on get_server_ip(), at the first free port of get_server_ports().

        Raises:
            OSError: no port is free.
        """
        ports = self.get_server_ports()
        for port in ports:
            with suppress(OSError):
                return socket.create_server((self.get_server_ip(), port), backlog=64)
        raise ResourceExhaustedError(
            f"Unable to bind to any of the ports {ports} of TFOS_SERVER_PORT (or {COORDINATOR})"
        )

    def get_server_ip(self) -> str:
        """The listen address: TFOS_SERVER_HOST, else the configured address, else this host's."""
        return os.environ.get(TFOS_SERVER_HOST) or self._hosts[0] or addresses.own_address()

    def get_server_ports(self) -> list[int]:
        """The candidate ports: those of TFOS_SERVER_PORT ("8888" or "9997-9999"), else the
        configured ones, else [0] (any)."""
        named = os.environ.get(TFOS_SERVER_PORT)
        return list(self._ports) if self._ports and not named else server_ports()

    def await_reservations(
        self,
        sc: Any,
        status: Mapping[str, Any] = {},
        timeout: float = 600,
    ) -> list[Any]:
        """Waits for all reservations and returns them.

        Raises:
            TimeoutError: not all arrived within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while not self.reservations.wait(min(1.0, max(0.0, deadline - time.monotonic()))):
            if "error" in status:
                raise HearthError(f"a node failed during its start: {status['error']}")
            if time.monotonic() >= deadline:
                raise DeadlineExceededError(
                    "timed out waiting for reservations to complete: "
                    f"{self.reservations.remaining()} of {self.reservations.required} are missing"
                )
        return self.reservations.get()

    def wait_done(self, timeout_s: float) -> bool:
        """Waits until a client requests a stop; returns whether one has."""
        return self.done or self._stopped.wait(timeout_s) or self.done

    def stop(self) -> None:
        """Ends the server. Idempotent."""
        self.done = True
        self._stopped.set()
        if self._acceptor is not None:
            _keys.pop(self._port, None)
            self._acceptor.close()
            self._acceptor = None

    def _serve(self, peer: Channel) -> None:
        if not self._clients.acquire(blocking=False):
            return
        try:
            while True:
                self.send(peer, self._answer(self.receive(peer)))
        finally:
            self._clients.release()

    def _answer(self, message: Message) -> Message:
        kind = message["type"]
        if kind == "REG":
            self.reservations.add(message["data"])
        elif kind == "QUERY":
            return {"data": self.reservations.done()}
        elif kind == "QINFO":
            return {"data": self.reservations.get()}
        elif kind == "AWAIT":
            return {"data": self.reservations.wait(_REPLY_TIMEOUT_S / 2)}
        elif kind == "STOP":
            self.done = True
            self._stopped.set()
        else:
            return {"data": "ERR"}
        return {"data": "OK"}


class Client(MessageSocket):
    """A connection to a Server. Not thread-safe."""

    def __init__(self, server_addr: tuple[str, int]):
        """Connects. The key is known for servers of this process, else $TFOS_SERVER_KEY (hex).

        Raises:
            PermissionError: the server has another key, or no key is known.
            ValueError: the known key is malformed.
            OSError: the server does not listen.
        """
        host, port = server_addr
        key = _keys.get(port) or bytes.fromhex(os.environ.get(KEY_VARIABLE, ""))
        if not key:
            raise PermissionDeniedError(
                f"the key of the server at {host}:{port} is unknown in this process: "
                f"set {KEY_VARIABLE} to the hex digits of cluster.server.key"
            )
        self.server_addr = server_addr
        terms = _terms(key)
        sock = socket.create_connection((host, port), timeout=_REPLY_TIMEOUT_S)
        self.sock = Channel(sock, f"the reservation server at {host}:{port}")
        self.sock.offer_handshake(terms)

    def _request(self, kind: str, data: Any = None) -> Any:
        self.send(self.sock, {"type": kind, "data": data})
        return self.receive(self.sock)["data"]

    def register(self, reservation: Any) -> Any:
        """Adds a reservation, any JSON value; returns "OK"."""
        return self._request("REG", reservation)

    def get_reservations(self) -> Any:
        """The reservations so far."""
        return self._request("QINFO")

    def await_reservations(self) -> Any:
        """Waits for all reservations; returns them."""
        while not self._request("AWAIT"):
            pass
        return self.get_reservations()

    def request_stop(self) -> Any:
        """Requests a stop, which ends a stream."""
        return self._request("STOP")

    def close(self) -> None:
        """Closes the connection to the server."""
        self.sock.close()


def _terms(key: bytes) -> Any:
    return handshake_terms(key.hex(), "reservation")


def ports_of_driver(setting: Setting) -> tuple[Sequence[int], str]:
    """The candidate ports for a cluster's listeners in the driver, and the name of their setting.

    Raises:
        HearthError: the setting is neither a port nor a range of ports.
    """
    if os.environ.get(TFOS_SERVER_PORT):
        return server_ports(), TFOS_SERVER_PORT
    return ports_of(setting, COORDINATOR), COORDINATOR


def server_ports() -> list[int]:
    """The ports of $TFOS_SERVER_PORT; [0] (any) without it.

    Raises:
        ValueError: the variable is neither a port nor a range of ports.
    """
    text = os.environ.get(TFOS_SERVER_PORT, "")
    if not text:
        return [0]
    first, dash, last = text.partition("-")
    ports = list(range(int(first), int(last) + 1)) if dash else [int(first)]
    if not ports:
        raise invalid(f"{TFOS_SERVER_PORT}={text} is invalid: use '8888' or '9997-9999'")
    return ports
