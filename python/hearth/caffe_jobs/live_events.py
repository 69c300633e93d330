"""Events of a training on their way to a client of Spark Connect, while it runs.

Rank 0's task, which hosts the coordinator then, sends them to the client where it can reach it.
Where it cannot, they come with the training's result: nothing waits for them.
"""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hearth.spark.access import ConnectSpark
from hearth.spark.ports import COORDINATOR, coordinator_ports, ports_of

Event = dict[str, Any]

_WAIT_S = 5.0
_CONNECT_S = 5.0
_END_S = 2.0


@dataclass(frozen=True)
class Listener:
    """Where the client hears; travels in Spark's task closure."""

    host: str
    port: int
    token: str

    def __repr__(self) -> str:  # the token must not reach a log
        return f"Listener({self.host}:{self.port})"


class LiveEvents:
    """The client's end: owns a listening socket, if it could have one.

    Attributes:
        listener: for rank 0's task; None without the socket.
    """

    def __init__(self, access: ConnectSpark):
        """Listens on the address by which this host reaches Spark's server; never fails."""
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
        except (OSError, ValueError) as error:  # no such address here, or no free port
            self._why = str(error)
            return
        port = self._coordinator.port()
        self.listener = Listener(host, port, token)
        self._why = f"rank 0's host did not reach this client at {host}:{port}"

    def take_all(self, on_event: Callable[[Event], None]) -> None:
        """Gives the events as they come; returns when it is closed and has no more.

        That the sender went away is no failure: its rank may have ended, or what it has not sent
        comes with the result.
        """
        while self._coordinator is not None:
            ending = self._ending.is_set()
            told = self._coordinator.next_event(_WAIT_S)
            value = json.loads(told[1]) if told is not None else None
            if value is not None:
                self._came.add(value["number"])
                on_event(value["event"])
            elif ending:
                return

    def missed(self, kept: Sequence[Event]) -> list[Event]:
        """Of the events that came with the result those that did not come before; why, if none did.

        Once take_all() has returned.
        """
        missed = [event for event in kept if event["number"] not in self._came]
        if missed and not self._came:
            text = f"no progress was shown while the training ran: {self._why} (docs/seeing.md)"
            return [{"event": "log", "level": "W", "text": text}, *missed]
        return missed

    def close(self) -> None:
        self._ending.set()
        if self._coordinator is not None:
            self._coordinator.close()


class EventSender:
    """Rank 0's end. It never fails: where the client cannot be reached, it sends nothing."""

    def __init__(self, listener: Listener):
        self._listener = listener
        self._events: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._over = False
        self._thread = threading.Thread(target=self._send_all, name="hearth-live", daemon=True)
        self._thread.start()

    def put(self, number: int, event: Any) -> None:
        """Sends an event, later; its number is one of its own."""
        if not self._over:
            self._events.put(json.dumps({"number": number, "event": event}))

    def close(self) -> None:
        """Waits a moment until all is sent."""
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
        except (OSError, RuntimeError):  # no way there, or the client is gone
            pass
        finally:
            self._over = True
