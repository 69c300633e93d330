"""Training steps in which every rank participates, even if it has no rows.

The Exchange interface hides a framework's tensors and communication.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# If no rank has rows, how long the ranks wait before they exchange their states again.
_IDLE_S = 0.1
_END = object()
# Name of the thread that waits for this rank's rows while steps continue without rows.
AHEAD = "hearth-ahead"


@dataclass(frozen=True)
class State:
    """A rank's state, sent to the others before a step."""

    rows: int
    ended: bool
    has_example: bool


class Exchange(Protocol):
    """The operations on a framework's minibatches, and between its ranks, that in_step() needs."""

    def exchange_states(self, own: State) -> list[State]:
        """Sends this rank's state to all ranks; returns the states of all, by rank."""

    def rows(self, batch: Any) -> int:
        """The number of rows of a minibatch. Raises TypeError for other values."""

    def two_rows(self, batch: Any) -> Any:
        """Copies of two rows, because normalization over a minibatch needs more than one."""

    def share(self, example: Any, source: int) -> Any:
        """Returns rank `source`'s example on ranks whose `example` is None, and `example` on
        others. All ranks call it."""


def in_step(
    batches: Iterable[Any], patience_s: float, exchange: Exchange
) -> Iterator[tuple[Any, float]]:
    """Yields (minibatch, weight) equally often on all ranks, until all ranks have run out of rows.

    A rank without rows gets two earlier rows with weight 0. Any other rank's weight is its share of
    the step's rows times the number of ranks, so that the mean over ranks is the mean over rows.
    `patience_s`: how long ranks wait for a rank that has just run out of rows.
    """
    ahead = Ahead(batches)
    example: Any = None  # rows for a rank that has none
    dry = False
    while True:
        batch = ahead.take(0.0 if dry else patience_s)
        if batch is not None and example is None:
            example = exchange.two_rows(batch)
        own = 0 if batch is None else exchange.rows(batch)
        states = exchange.exchange_states(State(own, ahead.ended, example is not None))
        total = sum(state.rows for state in states)
        dry = batch is None
        if total == 0:
            if all(state.ended for state in states):
                return
            ahead.wait(_IDLE_S)
            continue
        have: Sequence[bool] = [state.has_example for state in states]
        if not all(have):
            example = exchange.share(example, have.index(True))
        if batch is None:
            yield exchange.two_rows(example), 0.0  # copies, as the program may modify them
        else:
            ahead.given()
            yield batch, own * len(states) / total


class Feed(Protocol):
    """A feed that is read ahead of the program."""

    # Number of rows in the minibatches that were returned to the program; None: all rows.
    used: int | None

    @property
    def taken(self) -> int:
        """The number of rows taken so far."""


class Ahead:
    """A background thread that takes minibatches, one per request. Only one thread may request
    them."""

    def __init__(self, batches: Iterable[Any]):
        self.ended = False
        self._feeds: list[Feed] = []  # feeds that the thread reads; only the thread appends
        self._wanted: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._found: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._is_asked = False
        self._batch: Any = None
        # (feed, its `used` once the program has the minibatch).
        self._used: list[tuple[Feed, int]] = []
        # A daemon thread: it may still wait for rows when the program ends.
        self._thread = threading.Thread(target=self._run, args=(batches,), name=AHEAD, daemon=True)
        self._thread.start()

    def take(self, wait_s: float) -> Any:
        """The next minibatch; None if it does not arrive in time, or there are no more."""
        self.wait(wait_s)
        return self._batch

    def given(self) -> None:
        """Records that the program has the minibatch: take() returns the next one."""
        self._batch = None
        for feed, rows in self._used:
            feed.used = rows

    def wait(self, wait_s: float) -> None:
        """Waits for a minibatch, or for the end."""
        if self._batch is not None or self.ended:
            return
        if not self._is_asked:
            self._is_asked = True
            self._wanted.put(None)
        try:
            found = self._found.get(timeout=wait_s) if wait_s > 0 else self._found.get_nowait()
        except queue.Empty:
            return
        self._is_asked = False
        if isinstance(found, BaseException):
            raise found
        if found is _END:
            self.ended = True
            for feed in self._feeds:
                feed.used = None
        else:
            self._batch, self._used = found

    def note(self, feed: Feed) -> None:
        """Called in the background thread before it takes rows of a feed."""
        if feed not in self._feeds:
            feed.used = feed.taken
            self._feeds.append(feed)

    def _run(self, batches: Iterable[Any]) -> None:
        _here.ahead = self
        self._wanted.get()
        try:
            for batch in batches:
                self._found.put((batch, [(feed, feed.taken) for feed in self._feeds]))
                self._wanted.get()
            self._found.put(_END)
        except BaseException as error:
            self._found.put(error)


class _Here(threading.local):
    ahead: Ahead | None = None


_here = _Here()


def note_taking(feed: Feed) -> None:
    """Called by a feed before this thread takes rows of it.

    Rows that in_step() takes, directly or through a generator, do not count as used until in_step()
    has returned them to the program: see Feed.used.
    """
    if _here.ahead is None:
        feed.used = None
    else:
        _here.ahead.note(feed)


def parts_of(batch: Any) -> tuple[Any, list[Any]]:
    """(structure for whole_of(), arrays or tensors) of a batch, which is a dict, a tuple, or a
    single array or tensor."""
    if isinstance(batch, dict):
        return list(batch), list(batch.values())
    if isinstance(batch, tuple | list):
        return len(batch), list(batch)
    return None, [batch]


def whole_of(names: Any, parts: list[Any]) -> Any:
    """The inverse of parts_of()."""
    if names is None:
        return parts[0]
    return tuple(parts) if isinstance(names, int) else dict(zip(names, parts, strict=True))
