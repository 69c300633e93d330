"""Relays a feed's connection from a host without a node to a node on another host.

Feed tasks and nodes use only rings and a unix socket. If they are on two hosts, each side's rings
and socket lead to a relay on its own host. The two relays communicate over one TCP connection,
which the feed listener has authenticated. It carries the channel's frames, and rows as Arrow IPC
streams of one batch each.

A node may have hundreds of these connections, so its rings share a memory limit: the more there
are, the smaller new rings become. Each connection also holds one batch in transit, of at most a
quarter of the task's ring unless a single row is larger.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from hearth.cluster.channel import Channel
from hearth.errors import invalid

if TYPE_CHECKING:
    import pyarrow as pa

# Ring sizes of a feed task, for a node on its host and for a remote one, whose relays also buffer
# rows.
RING_BYTES = 16 << 20
REMOTE_RING_BYTES = 4 << 20
# Limit of the total size of the rings of all relays of a node, one limit for rows and one for
# results; only rings of the minimum sizes may exceed it. Rows are split to fit into a ring, but a
# piece of results (rows.pickles) must fit as a whole.
_NODE_BYTES = 128 << 20
_LEAST_ROWS_BYTES, _LEAST_RESULTS_BYTES = 256 << 10, 3 << 20
# Size of the largest batch that the core sends; a batch exceeds a ring only if a single row does.
_MAX_ROWS_BYTES = (4 << 30) + RING_BYTES
_FOREVER_S = 1e9


class RingMemory:
    """The memory for rings, whose sizes have a common limit. Thread-safe."""

    def __init__(self, limit: int):
        self._lock = threading.Lock()
        self._free = limit

    def allocate(self, least: int) -> int:
        """The size of a new ring: a part of the free memory, but at least `least`."""
        with self._lock:
            size = min(RING_BYTES, max(least, self._free // 16))
            self._free -= size
            return size

    def free(self, size: int) -> None:
        """Makes `size` bytes available again."""
        with self._lock:
            self._free += size


_rows_memory, _results_memory = RingMemory(_NODE_BYTES), RingMemory(_NODE_BYTES)


def at_task(remote: Channel) -> Channel:
    """Starts a feed task's relay of the channel `remote`; returns the channel that replaces it."""
    from hearth.native._core import RingReader, RingWriter

    def rings(local: Channel) -> tuple[Any, Any]:
        _, fds = local.receive(descriptors=4)
        return RingReader.attach(*fds[:2]), RingWriter.attach(*fds[2:])

    local, task = _pair()
    return _start(_Relay(remote, local, rings, to_task=local), task)


def at_node(sock: socket.socket) -> socket.socket:
    """Starts a node's relay for a remote connection; returns the local socket that replaces it."""
    from hearth.native._core import RingReader, RingWriter

    allocated: list[tuple[RingMemory, int]] = []

    def allocate(memory: RingMemory, least: int) -> int:
        allocated.append((memory, memory.allocate(least)))
        return allocated[-1][1]

    def free() -> None:
        for memory, size in allocated:
            memory.free(size)

    def rings(local: Channel) -> tuple[Any, Any]:
        results = RingReader(allocate(_results_memory, _LEAST_RESULTS_BYTES))
        rows = RingWriter(allocate(_rows_memory, _LEAST_ROWS_BYTES))
        local.send({"op": "rings"}, fds=(*rows.fds(), *results.fds()))
        rows.close_child_fds()
        results.close_child_fds()
        return results, rows

    remote = Channel(sock)
    local, node = _pair()
    relay = _Relay(remote, local, rings, to_task=remote, at_end=free)
    return socket.socket(fileno=_start(relay, node).detach())


def _pair() -> tuple[Channel, Channel]:
    ours, theirs = socket.socketpair()
    return Channel(ours), Channel(theirs)


def _start(relay: _Relay, theirs: Channel) -> Channel:
    threading.Thread(target=relay.run, name="hearth-relay", daemon=True).start()
    return theirs


class _Relay:
    """A relay, which runs three threads: one per direction of messages, and one for outgoing rows.

    When either connection ends or a thread fails, the relay closes both connections and the rings,
    which ends the other threads' waits. The feed task receives the failure's message.
    """

    def __init__(
        self,
        remote: Channel,
        local: Channel,
        rings: Callable[[Channel], tuple[Any, Any]],
        to_task: Channel,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._remote = remote
        self._local = local
        self._rings = rings
        self._to_task = to_task
        self._at_end = at_end
        self._opened: tuple[Any, ...] = ()

    def run(self) -> None:
        threads: list[threading.Thread] = []
        try:
            with self._ending():
                source, sink = self._opened = self._rings(self._local)
                for target, ring in ((self._send_rows, source), (self._receive, sink)):
                    thread = threading.Thread(target=target, args=(ring,), daemon=True)
                    thread.start()
                    threads.append(thread)
                while True:
                    self._remote.send(self._local.receive()[0])
        finally:
            for thread in threads:
                thread.join()
            self._remote.close()
            self._local.close()
            self._opened = ()
            self._at_end()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Ends the relay at the end of the block, for any reason."""
        try:
            yield
        except (EOFError, OSError):
            pass  # one side disconnected; the other sees its connection end
        except Exception as error:
            text = f"cannot relay rows between hosts: {type(error).__name__}: {error}"
            with suppress(OSError):
                self._to_task.send({"error": text})
        finally:
            self._remote.end()
            self._local.end()
            for ring in self._opened:
                ring.close()

    def _send_rows(self, source: Any) -> None:
        """Sends rows until the ring is closed; messages are still relayed afterwards."""
        try:
            while (entry := source.next(_FOREVER_S))[0] != "end":
                if entry[0] == "batch":
                    rows = _as_stream(entry[1])
                    self._remote.send({"op": "rows", "bytes": len(rows)}, data=rows)
                else:
                    self._remote.send({"op": "mark"})
        except (OSError, RuntimeError):
            pass  # the writer closed its ring because rows were dropped, or the writer died
        except Exception:
            with self._ending():
                raise

    def _receive(self, sink: Any) -> None:
        with self._ending():
            while True:
                message, _ = self._remote.receive()
                if message.get("op") == "rows":
                    self._pass_on(sink, message["bytes"])
                elif message.get("op") == "mark":
                    sink.flush(_FOREVER_S)
                else:
                    self._local.send(message)

    def _pass_on(self, sink: Any, count: int) -> None:
        if not 0 < count <= _MAX_ROWS_BYTES:
            raise invalid(f"the other host announced {count} bytes of rows")
        rows = _of_stream(self._remote.receive_data(count))
        # A reader that needs no more rows closes the ring: rows are dropped until the reader's
        # message stops the writer.
        with suppress(ConnectionError, RuntimeError):
            sink.write(rows, _FOREVER_S)


def _as_stream(rows: Any) -> memoryview:
    import pyarrow as pa

    batch = pa.record_batch(rows)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return memoryview(sink.getvalue())


def _of_stream(data: bytes) -> pa.RecordBatch:
    """The batch that _as_stream() serialized. Raises ValueError (pyarrow.ArrowInvalid) if the bytes
    are not an Arrow stream."""
    import pyarrow as pa

    with pa.ipc.open_stream(data) as stream:
        batch = stream.read_next_batch()
    batch.validate(full=True)
    return batch
