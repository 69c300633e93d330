"""Training steps in which every rank takes part, whether it has rows at the moment or not.

What a framework's tensors are, and how its ranks tell each other, it says itself (Exchange).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# How long a rank waits when no rank has rows, before they ask each other again.
_IDLE_S = 0.1
_END = object()
# The name of the thread that waits for rows while steps go on without them.
AHEAD = "hearth-ahead"


@dataclass(frozen=True)
class State:
    """What a rank tells the others before a step."""

    rows: int
    ended: bool
    has_example: bool


class Exchange(Protocol):
    """A framework's minibatches and ranks."""

    def tell(self, own: State) -> list[State]:
        """Every rank's state, by rank."""

    def rows(self, batch: Any) -> int:
        """How many rows a minibatch has. Raises TypeError for what is none."""

    def two_rows(self, batch: Any) -> Any:
        """Copies of two rows, for norms over a minibatch take no single one."""

    def share(self, example: Any, source: int) -> Any:
        """Gives the example of rank `source` to those whose `example` is None; the others keep
        theirs. All ranks call it."""


def in_step(
    batches: Iterable[Any], patience_s: float, exchange: Exchange
) -> Iterator[tuple[Any, float]]:
    """Yields (minibatch, weight) on all ranks equally often, until the rows of all have ended.

    A rank without rows gets two old ones with the weight 0; the weights of the others are their
    share of the step's rows times the number of ranks, so that the mean over the ranks is the mean
    over the rows. `patience_s`: how long the others wait for a rank that has just run out of rows.
    """
    ahead = Ahead(batches)
    example: Any = None  # what a rank without rows computes on
    dry = False
    while True:
        batch = ahead.take(0.0 if dry else patience_s)
        if batch is not None and example is None:
            example = exchange.two_rows(batch)
        own = 0 if batch is None else exchange.rows(batch)
        states = exchange.tell(State(own, ahead.ended, example is not None))
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
            yield exchange.two_rows(example), 0.0  # the program may write to what it gets
        else:
            ahead.given()
            yield batch, own * len(states) / total


class Feed(Protocol):
    """A feed whose rows are read ahead of the program."""

    # How many of its rows are in minibatches that the program has been given; None: all.
    used: int | None

    @property
    def taken(self) -> int:
        """How many rows were taken so far."""


class Ahead:
    """Takes minibatches in a thread of its own, each when it is asked for. One thread asks."""

    def __init__(self, batches: Iterable[Any]):
        self.ended = False
        self._feeds: list[Feed] = []  # that gave rows to its thread, which alone adds to it
        self._wanted: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._found: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._is_asked = False
        self._batch: Any = None
        self._used: list[tuple[Feed, int]] = []  # once the program has the minibatch
        # A daemon: it may wait for rows when the program has ended.
        self._thread = threading.Thread(target=self._run, args=(batches,), name=AHEAD, daemon=True)
        self._thread.start()

    def take(self, wait_s: float) -> Any:
        """The next minibatch; None where it does not come in time, or all have ended."""
        self.wait(wait_s)
        return self._batch

    def given(self) -> None:
        """The program has the minibatch: the next take() is for another."""
        self._batch = None
        for feed, rows in self._used:
            feed.used = rows

    def wait(self, wait_s: float) -> None:
        """Waits until there is a minibatch, or it is known that there is none."""
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
        """Its thread is about to take rows of a feed."""
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

    Of rows that in_step() takes, by whatever lies between, those that it has not given to the
    program yet are not used: see Feed.used.
    """
    if _here.ahead is None:
        feed.used = None
    else:
        _here.ahead.note(feed)
