"""Connects processes into a group of ranks; all they need to share is a store for one text.

Rank 0 opens the rendezvous and publishes its address; all ranks join the rendezvous, and connect to
each other. Each rank proves that it knows the key before any of its data is read.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import hmac
import os
import secrets
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from hearth import HearthError
from hearth.errors import UnavailableError
from hearth.native import _core
from hearth.spark.addresses import address_towards
from hearth.spark.links import mesh_ports
from hearth.spark.ports import MESH, coordinator_ports

# How long rank 0's close() waits for the other ranks, whose last operation may still be running.
_LAST_WAIT_S = 2.0
_POLL_S = 0.01
_ENDED_FIRST = (
    "rank 0 has ended before the others: unless it failed, give all ranks the same number of steps "
    "(in_step() does, with uneven rows)"
)


@dataclass(frozen=True)
class Rendezvous:
    """The store through which the ranks of a group find rank 0.

    Attributes:
        publish: stores a text for all ranks; rank 0 calls it once.
        read: waits for that text. Raises an error if it does not arrive.
        withdraw: removes the text; rank 0 calls it once all ranks have read the text, so that no
            later group reads it.
        host: this process's address for the other ranks; empty: its address on the route to rank 0.
        key: the secret that all ranks know; empty: rank 0 creates and publishes one, so that any
            reader of the store can join.
    """

    publish: Callable[[str], None]
    read: Callable[[], str]
    withdraw: Callable[[], object]
    host: str = ""
    key: str = ""


class Ranks:
    """This process's rank in a connected group. Thread-safe.

    Attributes:
        rank, world: this process's rank, and the number of ranks.
        timeout_s: time limit of an operation.
        description: the transports, as text.
    """

    def __init__(
        self,
        rendezvous: Rendezvous,
        rank: int,
        world: int,
        timeout_s: float,
        connect_timeout_s: float = 0,
    ):
        """Waits until all ranks have joined, at most `connect_timeout_s` (0: `timeout_s`).
        `timeout_s` limits each operation, from the operation's start.

        Raises:
            TimeoutError: not all ranks joined; names the missing ones.
            ConnectionError: a rank left before all were connected, or rank 0 is unreachable.
            HearthError: a rank failed.
        """
        self.rank, self.world, self.timeout_s = rank, world, timeout_s
        limit = connect_timeout_s or timeout_s
        self._coordinator: Any = None
        if rank == 0:
            self._coordinator, key = _open(rendezvous, world, limit)
            host, port = self._coordinator.host(), self._coordinator.port()
        else:
            host, port, key = _found(rendezvous)
        own = rendezvous.host or (host if rank == 0 else address_towards(host, port))
        try:
            self._member = _core.Member(
                host=host,
                port=port,
                token=key,
                rank=rank,
                world=world,
                host_name=socket.gethostname(),
                connect_timeout_s=limit,
            )
            self._member.reserve("{}")
            if rank == 0:
                rendezvous.withdraw()
            self._group = _core.Group.connect(self._member, listen_host=own, timeout_s=limit)
        except BaseException:
            self._close_coordinator()
            raise
        self.description = self._group.description
        self._queue = _core.Queue(self._group, timeout_s)
        self._left = False
        _open_ranks.add(self)

    def submit(self, request: Any) -> Callable[[float], None]:
        """Submits a core Request to the Queue, which runs requests in order of submission.

        Returns a function that waits up to a number of seconds for the operation, and raises its
        error: ConnectionError, TimeoutError, ValueError if ranks disagree, HearthError.

        Raises:
            HearthError: the group was closed.
            ValueError: the arrays' sizes do not match, or the request is invalid.
        """
        handle = self._open_queue().submit(request)

        def wait(seconds: float) -> None:
            with _noting_loss():
                handle.wait(seconds)

        return wait

    def try_run(self, request: Any) -> bool:
        """Runs a Request in this thread. Returns False, and does nothing, if other requests are
        queued. Raises the errors of submit() and its wait."""
        queue = self._open_queue()
        with _noting_loss():
            return queue.try_run(request)

    def c_api(self) -> int:
        """The address of the C interface for plug-ins (hearth/collective/c_api.h), which must be
        released before close()."""
        return self._queue.c_api()

    def failure(self) -> str | None:
        """The reason for the group's failure, such as a lost rank; None if it has not failed."""
        member = self._member
        failure = member.failure() if member is not None else None
        return failure["message"] if failure else None

    @property
    def rendezvous_ended(self) -> bool:
        """Whether the group has failed because rank 0, which runs the rendezvous, has ended."""
        member = self._member
        failure = member.failure() if member is not None else None
        return failure is not None and failure["rank"] < 0

    def abort(self, reason: str) -> None:
        """Fails running and later operations, on this rank and all others."""
        group = self._group
        if group is not None:
            group.abort(reason)
        self.leave()

    def close(self) -> None:
        """Ends this rank; operations in which other ranks still wait for it fail. Idempotent."""
        self.leave()
        self._close_coordinator()
        # Closes the sockets now, not when Python collects this object.
        self._queue = self._group = self._member = None

    def leave(self) -> None:
        """Announces that this rank leaves, without waiting. Call it on all ranks of a process
        before close(): rank 0's close() waits for the others."""
        if self._left:
            return
        self._left = True
        _open_ranks.discard(self)
        self._queue.close()
        with suppress(Exception):  # the group has failed already, and all ranks know it
            self._member.done()

    def disown(self) -> None:
        """Called in a forked child, where the core's threads do not exist. The connections belong
        to the parent, and stay open."""
        self._left = True
        for each in (self._queue, self._group, self._member, self._coordinator):
            # Leaks each object of the core: the destructor would wait for threads, and report to
            # other ranks that this rank has left.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
        self._queue = self._group = self._member = self._coordinator = None

    def _open_queue(self) -> Any:
        queue = self._queue
        if queue is None:
            raise HearthError(
                "the group of ranks was closed before this operation, or belongs to the process "
                "from which this one was forked"
            )
        return queue

    def _close_coordinator(self) -> None:
        coordinator, self._coordinator = self._coordinator, None
        if coordinator is None:
            return
        limit = time.monotonic() + _LAST_WAIT_S
        while not (coordinator.finished() or coordinator.failure() or time.monotonic() > limit):
            time.sleep(_POLL_S)
        if not coordinator.finished():
            coordinator.fail(-1, "", _ENDED_FIRST)
        coordinator.close()


_lost = threading.Event()


@contextmanager
def _noting_loss() -> Iterator[None]:
    try:
        yield
    except (ConnectionError, HearthError) as error:
        if not isinstance(error, (ValueError, TimeoutError)):
            _lost.set()
        raise


def note_loss() -> None:
    """Records that an operation outside of Ranks has failed because another rank was lost."""
    _lost.set()


def lost_a_rank() -> bool:
    """Whether an operation of this process has failed, or will, because another rank was lost."""
    return _lost.is_set() or any(ranks.failure() is not None for ranks in list(_open_ranks))


# Groups to close at exit. A process that exits without close() has not failed, so at exit it
# reports that it is done.
_open_ranks: weakref.WeakSet[Ranks] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    left = list(_open_ranks)
    for ranks in left:
        ranks.leave()
    for ranks in left:
        ranks.close()


def _disown_all() -> None:
    for ranks in list(_open_ranks):
        ranks.disown()


os.register_at_fork(after_in_child=_disown_all)


def _open(rendezvous: Rendezvous, world: int, timeout_s: float) -> tuple[Any, str]:
    """Opens rank 0's rendezvous; returns it and its key."""
    host = rendezvous.host or "127.0.0.1"
    nonce = secrets.token_hex(16)
    key = derived_key(rendezvous.key, nonce) if rendezvous.key else _core.new_token()
    coordinator = _core.Coordinator(
        world=world,
        token=key,
        bind_host=host,
        advertise_host=host,
        reserve_timeout_s=timeout_s,
        **coordinator_ports(mesh_ports(), MESH),
    )
    shown = nonce if rendezvous.key else key
    rendezvous.publish(f"{coordinator.host()} {coordinator.port()} {shown}")
    return coordinator, key


def _found(rendezvous: Rendezvous) -> tuple[str, int, str]:
    """(host, port, key) of rank 0's rendezvous."""
    text = rendezvous.read()
    try:
        host, port, shown = text.split(" ")
        return host, int(port), derived_key(rendezvous.key, shown) if rendezvous.key else shown
    except ValueError:
        raise UnavailableError(
            f"rank 0 published {text!r} instead of its address: check that all ranks run the "
            "same program and version of hearth"
        ) from None


def derived_key(key: str, nonce: str) -> str:
    """A key for one group, so that groups of the same ranks cannot be confused."""
    return hmac.new(key.encode(), nonce.encode(), hashlib.sha256).hexdigest()
