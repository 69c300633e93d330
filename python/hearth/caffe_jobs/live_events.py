"""Sends events of a running training to a client of Spark Connect.

With Spark Connect, rank 0's task hosts the coordinator. The task sends the events to the client if
it can reach it; otherwise they arrive with the training's result. The training never waits for
this.
"""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hearth.spark.access import ConnectSpark
from hearth.spark.ports import COORDINATOR, coordinator_ports, ports_of

Event = dict[str, Any]

_WAIT_S = 5.0
_CONNECT_S = 5.0
_END_S = 2.0


@dataclass(frozen=True)
class Listener:
    """Address of the client's listener, serialized in Spark's task closure."""

    host: str
    port: int
    token: str = field(repr=False)  # secret: must not reach a log


class LiveEvents:
    """Receives events in the client. Owns the listening socket, if one could be opened.

    Attributes:
        listener: the socket's address for rank 0's task; None without a socket.
    """

    def __init__(self, access: ConnectSpark):
        """Listens on the address from which this host reaches Spark's server; never fails."""
        from hearth.native._core import Coordinator, new_token

        self.listener: Listener | None = None
        self._coordinator: Any = None
        self._came: set[int] = set()
        self._ending = threading.Event()
        token = new_token()
        ports = ports_of(access.conf, COORDINATOR)
        try:
            bind_host, host = access.coordinator_hosts()
            self._coordinator = Coordinator(
                world=1, token=token, bind_host=bind_host, **coordinator_ports(ports, COORDINATOR)
            )
        except (OSError, ValueError) as error:  # not a local address, or no free port
            self._why = str(error)
            return
        port = self._coordinator.port()
        self.listener = Listener(host, port, token)
        self._why = f"rank 0's host did not reach this client at {host}:{port}"

    def take_all(self, on_event: Callable[[Event], None]) -> None:
        """Calls `on_event` with each event as it arrives; returns after close(), once all received
        events are passed on.

        A disconnected sender is not a failure: its rank may have ended, and the unsent events
        arrive with the training's result.
        """
        while self._coordinator is not None:
            ending = self._ending.is_set()
            received = self._coordinator.next_event(_WAIT_S)
            value = json.loads(received[1]) if received is not None else None
            if value is not None:
                self._came.add(value["number"])
                on_event(value["event"])
            elif ending:
                return

    def missed(self, kept: Sequence[Event]) -> list[Event]:
        """The events of the result that were not received before; if none were received, a log
        event with the reason comes first. Call it after take_all() has returned.
        """
        missed = [event for event in kept if event["number"] not in self._came]
        if missed and not self._came:
            text = f"no progress was shown while the training ran: {self._why} (docs/seeing.md)"
            return [{"event": "log", "level": "W", "text": text}, *missed]
        return missed

    def close(self) -> None:
        """Stops receiving; take_all() returns once it has passed on the received events."""
        self._ending.set()
        if self._coordinator is not None:
            self._coordinator.close()


class EventSender:
    """Sends events from rank 0's task. Never fails: if the client is unreachable, drops them."""

    def __init__(self, listener: Listener):
        self._listener = listener
        self._events: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._over = False
        self._thread = threading.Thread(target=self._send_all, name="hearth-live", daemon=True)
        self._thread.start()

    def put(self, number: int, event: Any) -> None:
        """Queues an event with its unique number."""
        if not self._over:
            self._events.put(json.dumps({"number": number, "event": event}))

    def close(self) -> None:
        """Waits up to two seconds until all events are sent."""
        self._events.put(None)
        self._thread.join(_END_S)

    def _send_all(self) -> None:
        from hearth.native._core import Member

        to = self._listener
        try:
            member = Member(
                host=to.host,
                port=to.port,
                token=to.token,
                rank=0,
                world=1,
                host_name=socket.gethostname(),
                connect_timeout_s=_CONNECT_S,
            )
            while (event := self._events.get()) is not None and member.failure() is None:
                member.send_event(event)
            member.done()
        except (OSError, RuntimeError):  # the client is unreachable, or has closed the connection
            pass
        finally:
            self._over = True
