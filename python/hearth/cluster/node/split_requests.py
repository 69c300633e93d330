"""A node's side of file feeds: requests its splits from the driver, and reports bytes read."""

from __future__ import annotations

import base64
import itertools
import pickle
import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hearth.cluster.channel import Message
from hearth.errors import HearthError

if TYPE_CHECKING:
    from hearth.sources.file_source import FileSource

# Time limit for the driver's answer, as the driver may have to list a large folder.
_ANSWER_S = 600.0
# Interval of reports of bytes read.
_REPORT_S = 1.0


class SplitRequests:
    """Requests to the driver for splits of files. Thread-safe. `report` sends an event to the
    driver."""

    def __init__(self, report: Callable[[Message], None]):
        self._report = report
        self._numbers = itertools.count()
        self._waiting: dict[int, queue.SimpleQueue[Message]] = {}
        self._lock = threading.Lock()
        self._failed: str | None = None

    def ask(self, uri: str) -> tuple[FileSource, frozenset[str]]:
        """(the pinned source with this node's splits, the names of this node's host).

        Raises:
            HearthError: the files cannot be listed, or the driver does not answer.
        """
        answers: queue.SimpleQueue[Message] = queue.SimpleQueue()
        with self._lock:
            if self._failed is not None:
                raise HearthError(self._failed)
            number = next(self._numbers)
            self._waiting[number] = answers
        self._report({"event": "files", "ask": number, "uri": uri})
        try:
            answer = answers.get(timeout=_ANSWER_S)
        except queue.Empty:
            raise HearthError(
                f"the driver did not assign files of {uri} within {_ANSWER_S:g} s"
            ) from None
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if "error" in answer:
            raise HearthError(answer["error"])
        return pickle.loads(base64.b64decode(answer["source"])), frozenset(answer["host"])

    def answer(self, message: Message) -> None:
        """Handles an answer of the driver, which is dropped if the requesting thread has timed
        out."""
        with self._lock:
            answers = self._waiting.get(message["ask"])
        if answers is not None:
            answers.put(message)

    def fail(self, reason: str) -> None:
        """Ends all waits with an error, because the cluster has failed."""
        with self._lock:
            self._failed = reason
            for answers in self._waiting.values():
                answers.put({"error": reason})

    def counter(self) -> ReadCounter:
        """Counts the bytes that one feed reads."""
        return ReadCounter(self._report)


class ReadCounter:
    """Reports at intervals and at the end how many bytes were read locally and remotely."""

    def __init__(self, report: Callable[[Any], None]):
        self._report = report
        self._lock = threading.Lock()
        self._bytes = {True: 0, False: 0}
        self._reported = time.monotonic()

    def add(self, count: int, local: bool) -> None:
        """Adds bytes read. Thread-safe."""
        with self._lock:
            self._bytes[local] += count
        if time.monotonic() - self._reported > _REPORT_S:
            self.flush()

    def flush(self) -> None:
        """Reports the bytes read since the last report."""
        self._reported = time.monotonic()
        with self._lock:
            local, remote = self._bytes[True], self._bytes[False]
            self._bytes = {True: 0, False: 0}
        if local or remote:
            self._report({"event": "files_read", "local": local, "remote": remote})
