"""What the driver knows of its feed jobs: who brings which partition, what was taken, what is safe.

Spark may run several attempts of a task: retries, speculation, a late one on an executor that was
given up. They may reach different nodes, and rows that a program was given cannot be taken back. So
the rows of a partition are brought by one attempt at a time, its owner; another one waits. Where
the owner is done, the other has nothing to bring. Where it died, the other goes on behind the last
row that was given, after its node has seen the same rows come before it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
# (node, number of the attempt at that node)
Attempt = tuple[int, int]


@dataclass
class Brought:
    """One partition of a feed job."""

    owner: Attempt | None = None
    waiting: deque[Attempt] = field(default_factory=deque)
    end: str = ""  # "taken" or "terminated", once no more rows are wanted of it
    # How far its rows were given: batches, their hash, rows.
    batches: int = 0
    hash: int = 0
    rows: int = 0
    whole: bool = False  # all rows were given before a restart: they are only compared
    unsafe: set[Attempt] = field(default_factory=set)  # those whose rows no commit() covers yet
    safe: bool = False


class Ledger:
    """All feed jobs between open() and close(). Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, dict[int, Brought]] = {}
        self._rows: dict[str, dict[int, int]] = {}

    def open(self, feed: str) -> None:
        """From now on attempts of this job may bring rows."""
        with self._lock:
            self._jobs[feed], self._rows[feed] = {}, {}

    def close(self, feed: str) -> None:
        """Forgets it; attempts that come late are refused."""
        with self._lock:
            self._jobs.pop(feed, None)
            self._rows.pop(feed, None)

    def note(self, rank: int, event: Mapping[str, Any]) -> list[Message]:
        """Takes an event of a feed from node `rank`; returns what nodes are to be told."""
        with self._lock:
            kind, job = event["event"], self._jobs.get(event["feed"])
            if kind == "claim":
                return self._claim(event["feed"], event["partition"], (rank, event["claim"]))
            if job is None:
                return []
            if kind == "safe":
                self._note_safe(job, rank, event["partitions"])
                return []
            if kind == "rows":
                return self._note_rows(job, rank, event)
            return self._claim_ended(job, rank, event)

    def _claim(self, feed: str, index: int, attempt: Attempt) -> list[Message]:
        job = self._jobs.get(feed)
        if job is None:
            return [_answer(attempt, "over")]
        brought = job.setdefault(index, Brought())
        if brought.end:
            return [_answer(attempt, brought.end)]
        brought.waiting.append(attempt)
        return _next_owner(brought, feed, index)

    def _claim_ended(
        self, job: dict[int, Brought], rank: int, event: Mapping[str, Any]
    ) -> list[Message]:
        brought, attempt = job.get(event["partition"]), (rank, event["claim"])
        if brought is None or brought.owner != attempt:
            return []
        brought.owner = None
        brought.batches, brought.hash = event["batches"], event["hash"]
        if event["rows"] == brought.rows:  # it gave none itself
            brought.unsafe.discard(attempt)
        brought.rows = event["rows"]
        if event["state"] == "broken":
            return _next_owner(brought, event["feed"], event["partition"])
        brought.end = event["state"]
        _see_whether_safe(brought)
        answers = [_answer(waiting, brought.end) for waiting in brought.waiting]
        brought.waiting.clear()
        return answers

    def _note_rows(
        self, job: dict[int, Brought], rank: int, event: Mapping[str, Any]
    ) -> list[Message]:
        index = event["partition"]
        # Every node has a replay of its own.
        self._rows[event["feed"]][index if index >= 0 else -1 - rank] = event["rows"]
        brought = job.get(index)
        # Who waits for a slow owner must know that there is progress.
        return [_answer(attempt, "wait") for attempt in brought.waiting] if brought else []

    def _note_safe(self, job: dict[int, Brought], rank: int, parts: list[list[int]]) -> None:
        for index, claim in parts:
            brought = job.get(index)
            if brought is not None:
                brought.unsafe.discard((rank, claim))
                _see_whether_safe(brought)

    def taken(self, feed: str) -> int:
        """Rows of the job that programs have taken, as of a moment ago."""
        with self._lock:
            return sum(self._rows.get(feed, {}).values())

    def safe(self, feed: str) -> frozenset[int]:
        """The partitions of the job whose rows are safe."""
        with self._lock:
            return frozenset(i for i, brought in self._jobs.get(feed, {}).items() if brought.safe)

    def unfinished(self, feed: str) -> list[int]:
        """The partitions of the job of which rows were given, but not all, or not known yet."""
        with self._lock:
            parts = self._jobs.get(feed, {}).items()
            begun = [(i, part) for i, part in parts if part.owner is not None or part.batches]
            return sorted(i for i, part in begun if not part.end and not part.whole)

    def start_again(self) -> None:
        """All nodes are new: partitions that are not safe come again as a whole.

        Of those that are, whoever brings one again only has its rows compared.
        """
        with self._lock:
            for job in self._jobs.values():
                for index, brought in list(job.items()):
                    if not brought.safe:
                        del job[index]
                        continue
                    brought.owner, brought.end, brought.whole = None, "", True
                    brought.waiting.clear()


def _see_whether_safe(brought: Brought) -> None:
    brought.safe = brought.safe or (brought.end == "taken" and not brought.unsafe)


def _next_owner(brought: Brought, feed: str, index: int) -> list[Message]:
    if brought.owner is not None or not brought.waiting:
        return []
    brought.owner = brought.waiting.popleft()
    if not brought.whole:
        brought.unsafe.add(brought.owner)
    seen = {name: getattr(brought, name) for name in ("batches", "hash", "rows", "whole")}
    return [_answer(brought.owner, "begin") | seen | {"feed": feed, "partition": index}]


def _answer(attempt: Attempt, answer: str) -> Message:
    rank, claim = attempt
    return {"op": "claim", "to": rank, "claim": claim, "answer": answer}
