"""Sends messages between two ranks. Each direction of a pair, a lane, has a connection and a
thread.

A send therefore waits only for its receiver, whatever other operations the two ranks run. A lane is
created at its first use.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from hearth.errors import DeadlineExceededError, UnavailableError
from hearth.ranks.group import Ranks, Rendezvous

# Interval at which a wait checks for lost ranks.
_FAILURE_POLL_S = 0.2


class Lanes:
    """The lanes of one rank. Thread-safe.

    `rendezvous_of` returns the rendezvous for a lane's name. `failure` returns the failure of the
    group of all ranks, which ends waits for a lost rank that never connects its lanes.
    """

    def __init__(
        self,
        rank: int,
        rendezvous_of: Callable[[str], Rendezvous],
        failure: Callable[[], str | None],
        timeout_s: float,
    ):
        self._rank = rank
        self._failure = failure
        self._rendezvous_of = rendezvous_of
        self._timeout_s = timeout_s
        self._lanes: dict[tuple[int, int], _Lane] = {}
        self._lock = threading.Lock()

    def send(self, request: Any, to: int) -> Callable[[float], None]:
        """Returns at once. The result is a function that waits up to a number of seconds for the
        send."""
        return self._lane(self._rank, to).submit(request)

    def receive(self, request: Any, source: int) -> Callable[[float], None]:
        """Returns at once. The result is a function that waits up to a number of seconds for the
        bytes."""
        return self._lane(source, self._rank).submit(request)

    def leave(self) -> None:
        """Ends all lanes, without waiting; pending operations fail."""
        with self._lock:
            for lane in self._lanes.values():
                lane.leave()

    def close(self) -> None:
        """Closes the lanes' groups, which other ranks may still need for a moment after leave()."""
        with self._lock:
            for lane in self._lanes.values():
                lane.close()

    def _lane(self, source: int, to: int) -> _Lane:
        with self._lock:
            lane = self._lanes.get((source, to))
            if lane is None:
                lane = _Lane(
                    self._rendezvous_of(f"{source}-{to}"), self._failure, source, to, self._rank
                )
                lane.start(self._timeout_s)
                self._lanes[source, to] = lane
            return lane


class _Lane:
    """One direction of a pair of ranks, as seen by one of them."""

    def __init__(
        self,
        rendezvous: Rendezvous,
        failure: Callable[[], str | None],
        source: int,
        to: int,
        rank: int,
    ):
        self._rendezvous = rendezvous
        self._failure = failure
        self._sends = rank == source
        self._name = f"the message from rank {source} to rank {to}"
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._ranks: Ranks | None = None

    def start(self, timeout_s: float) -> None:
        threading.Thread(target=self._run, args=(timeout_s,), daemon=True).start()

    def submit(self, request: Any) -> Callable[[float], None]:
        request.peer = 1 if self._sends else 0
        future: Future[None] = Future()
        self._queue.put((request, future))
        return lambda seconds: self._wait(future, seconds)

    def leave(self) -> None:
        self._queue.put(None)
        if self._ranks is not None:
            self._ranks.abort("the process group was destroyed")

    def close(self) -> None:
        if self._ranks is not None:
            self._ranks.close()

    def _wait(self, future: Future[None], seconds: float) -> None:
        limit = time.monotonic() + seconds
        while not wait([future], timeout=_FAILURE_POLL_S).done:
            if lost := self._failure():
                raise UnavailableError(f"{self._name}: {lost}")
            if time.monotonic() > limit:
                raise DeadlineExceededError(f"{self._name} did not finish within {seconds:g} s")
        future.result()

    def _run(self, timeout_s: float) -> None:
        while (item := self._queue.get()) is not None:
            request, future = item
            try:
                if self._ranks is None:
                    self._ranks = Ranks(self._rendezvous, 0 if self._sends else 1, 2, timeout_s)
                self._ranks.submit(request)(timeout_s)
            except Exception as error:
                error.add_note(self._name)
                future.set_exception(error)
            else:
                future.set_result(None)
