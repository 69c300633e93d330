"""A node's side of file feeds: asks the driver for its share, and tells it what was read."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from hearth.cluster.channel import Message
from hearth.rows.file_parts import Part, unpacked

# For the driver to list the files of a large folder.
_ANSWER_S = 600.0
# How often the driver is told what was read.
_TELL_S = 1.0


class FileShares:
    """Any thread may ask. `report` sends an event to the driver."""

    def __init__(self, report: Callable[[Message], None]):
        self._report = report
        self._numbers = itertools.count()
        self._waiting: dict[int, queue.SimpleQueue[Message]] = {}
        self._lock = threading.Lock()
        self._failed: str | None = None

    def ask(self, uri: str) -> tuple[list[Part], list[str]]:
        """(this node's parts of the files, files that tell the schema of TFRecords).

        Raises:
            HearthError: they cannot be listed, or the driver does not answer.
        """
        from hearth import HearthError

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
                f"the driver did not say within {_ANSWER_S:g} s which files of {uri} to read"
            ) from None
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if "error" in answer:
            raise HearthError(answer["error"])
        return unpacked(answer["share"])

    def answer(self, message: Message) -> None:
        """What the driver answers; whoever asked may be gone."""
        with self._lock:
            answers = self._waiting.get(message["ask"])
        if answers is not None:
            answers.put(message)

    def fail(self, reason: str) -> None:
        """The cluster has failed: nobody will answer any more."""
        with self._lock:
            self._failed = reason
            for answers in self._waiting.values():
                answers.put({"error": reason})

    def counter(self) -> ReadCounter:
        """For one feed."""
        return ReadCounter(self._report)


class ReadCounter:
    """Tells the driver, once in a while and at the end, how many bytes were read from where."""

    def __init__(self, report: Callable[[Any], None]):
        self._report = report
        self._bytes = {True: 0, False: 0}
        self._told = time.monotonic()

    def add(self, count: int, near: bool) -> None:
        self._bytes[near] += count
        if time.monotonic() - self._told > _TELL_S:
            self.tell()

    def tell(self) -> None:
        """Tells what has not been told."""
        self._told = time.monotonic()
        near, far = self._bytes[True], self._bytes[False]
        if near or far:
            self._bytes = {True: 0, False: 0}
            self._report({"event": "files_read", "near": near, "far": far})
