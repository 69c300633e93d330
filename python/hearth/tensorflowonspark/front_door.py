"""Where feed tasks meet a node: a unix socket of its host, a TCP port for those of other hosts.

The supervisor owns it, so that it can say why a node is gone. A peer proves that it knows the
cluster's key before a byte of it is parsed; then its connection is handed to the node.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from hearth.tensorflowonspark.channel import Channel, Message, accept_handshake

# Connections of a listener whose handshake runs; the kernel queues the others.
_MAX_HANDSHAKES = 32
# Refusals that are told of; all are counted.
_TOLD_REFUSALS = 10
# A connection may ask why the node ended a moment before that is known.
_REASON_WAIT_S = 3.0


class FrontDoor:
    """Listens until close(). `node` gets each authenticated connection as {"op": "feed"}."""

    def __init__(
        self, key: bytes, node: Channel, on_error: Callable[[Message], None], address: str = ""
    ):
        """`on_error` is told of feeds that fail here, as a "feed_error" event, from many threads.

        `address`: of the interface on which other hosts may come; "": they may not.
        """
        self._key = key
        self._node = node
        self._on_error = on_error
        self._lock = threading.Lock()
        self.refused = 0
        self._failure: str | None = None
        self._failed = threading.Event()
        self._terminated = False
        # In Linux's abstract namespace: no file to leave behind, none of another container.
        self.name = f"hearth-{os.getpid()}-{secrets.token_hex(8)}"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind("\0" + self.name)
        self._listeners = [listener]
        self.port = 0
        if address:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            self._listeners.append(socket.create_server((address, 0), family=family))
            self.port = self._listeners[1].getsockname()[1]
        for listener in self._listeners:
            listener.listen(128)
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def set_failure(self, reason: str) -> None:
        """From now on whoever comes is told `reason`; the first one stays."""
        self._failure = self._failure or reason
        self._failed.set()

    def set_terminated(self) -> None:
        """The node's program has returned and wanted no more rows: whoever comes may go again."""
        self._terminated = True

    def close(self) -> None:
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        # Strangers of the network do not keep this host's feeds waiting.
        handshakes = threading.BoundedSemaphore(_MAX_HANDSHAKES)
        with suppress(OSError):  # closed
            while True:
                peer, address = listener.accept()
                handshakes.acquire()
                who = address[0] if peer.family != socket.AF_UNIX else "a process of this host"
                arguments = (peer, who, handshakes)
                threading.Thread(target=self._admit, args=arguments, daemon=True).start()

    def _admit(self, peer: socket.socket, who: str, handshakes: threading.BoundedSemaphore) -> None:
        # Errors: a stranger, or a task that is gone.
        with peer, suppress(OSError, EOFError, ValueError):
            try:
                accept_handshake(peer, self._key)
            except (OSError, EOFError) as error:
                self._count_refusal(who, error)
                return
            finally:
                handshakes.release()
            channel = Channel(peer)
            greeting, _ = channel.receive(_REASON_WAIT_S)
            if greeting.get("op") == "why":
                self._failed.wait(_REASON_WAIT_S)
                channel.send({"error": self._failure or ""})
            elif greeting.get("op") == "timeout":
                self._report(greeting, str(greeting.get("text")), timeout=True)
            elif self._failure is not None:
                channel.send({"error": self._failure})
                self._report(greeting, self._failure, timeout=False)
            elif self._terminated:
                channel.send({"op": "terminated"})
            else:
                channel.send({"op": "welcome"})
                afar = peer.family != socket.AF_UNIX
                self._node.send({"op": "feed", "from_afar": afar}, fds=(peer.fileno(),))

    def _count_refusal(self, who: str, error: Exception) -> None:
        with self._lock:
            self.refused += 1
            told = self.refused <= _TOLD_REFUSALS
        if told:
            print(f"hearth: {who} was refused at a node's door: {error}", file=sys.stderr)

    def _report(self, greeting: Message, text: str, timeout: bool) -> None:
        """Tells the driver at once, before Spark tries the feed task again."""
        feed = str(greeting.get("feed"))
        self._on_error({"event": "feed_error", "feed": feed, "text": text, "timeout": timeout})
