"""Rank 0's coordinator: determines one order of the operations that ranks submit.

Ranks submit operations in any order. An operation is complete once every member of its process set
has submitted it. All ranks run operations in the order in which the coordinator found them
complete, so no two ranks wait for each other in different operations.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hearth.horovod.agreement import agree
from hearth.horovod.variables import number

logger = logging.getLogger(__name__)

Message = dict[str, Any]
Send = Callable[[Message], None]

# Reductions that complete together are fused up to this many bytes.
_FUSION_BYTES = number("HOROVOD_FUSION_THRESHOLD", 64 << 20, "bytes")
_STALL_WARNING_S = number("HOROVOD_STALL_CHECK_TIME_SECONDS", 60.0, "seconds")
_STALL_LIMIT_S = number("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", 0.0, "seconds")


@dataclass
class _Waiting:
    """An operation submitted by some members of its process set."""

    calls: dict[int, Message] = field(default_factory=dict)
    since: float = field(default_factory=time.monotonic)
    warned: bool = False


class Coordinator:
    """Rank 0's coordinator. Any thread may pass it messages of ranks; a dedicated thread handles
    them.

    `sends`: for each rank, a function that sends it a message. A rank that cannot be reached is
    removed.
    """

    def __init__(self, sends: dict[int, Send]):
        self._sends = sends
        self._sets: dict[int, list[int]] = {0: sorted(sends)}
        self._next_set = 1
        self._waiting: dict[tuple[int, str], _Waiting] = {}
        self._joined: list[int] = []
        self._gone: dict[int, Message] = {}  # why a rank has left, by rank
        self._inbox: queue.SimpleQueue[tuple[int, Message] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="hearth-horovod-order", daemon=True)
        self._thread.start()

    def take(self, rank: int, message: Message) -> None:
        """Accepts a message of a rank."""
        self._inbox.put((rank, message))

    def remove(self, rank: int, reason: str, lost: bool) -> None:
        """Reports that a rank's connection has ended; `lost`: whether the rank sent no "bye"
        message before."""
        self._inbox.put((rank, {"gone": reason, "lost": lost}))

    def close(self) -> None:
        """Ends the thread after it has handled earlier messages."""
        self._inbox.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            batch = self._next_batch()
            complete: list[Message] = []
            for each in batch:
                if each is None:
                    return
                complete += self._handle(*each)
            if complete:
                self._send_all(_fused(complete))
            self._check_stalls()

    def _next_batch(self) -> list[tuple[int, Message] | None]:
        try:
            batch = [self._inbox.get(timeout=self._patience())]
        except queue.Empty:
            return []
        with suppress(queue.Empty):
            while True:
                batch.append(self._inbox.get_nowait())
        return batch

    def _patience(self) -> float | None:
        limits = [s for s in (_STALL_WARNING_S, _STALL_LIMIT_S) if s > 0]
        return min(limits) if limits and self._waiting else None

    def _handle(self, rank: int, message: Message) -> list[Message]:
        """The operations that this message completes."""
        if "gone" in message:
            return self._remove(rank, message)
        if "join" in message:
            return self._join(rank)
        key = message["set"], message["name"]
        members = self._sets.get(message["set"])
        if members is None:
            text = f"'{message['name']}': process set {message['set']} no longer exists"
            self._send_all([_failed(*key, [rank], text)])
            return []
        lost = [r for r in members if r in self._gone]
        if lost:
            self._send_all([{**_failed(*key, [rank], ""), **self._loss(message["name"], lost)}])
            return []
        self._waiting.setdefault(key, _Waiting()).calls[rank] = message["call"]
        return self._completed(key)

    def _completed(self, key: tuple[int, str]) -> list[Message]:
        members = self._sets[key[0]]
        calls = self._waiting[key].calls
        joined = [r for r in members if r in self._joined and r not in calls]
        if len(calls) + len(joined) < len(members) or not calls:
            return []
        del self._waiting[key]
        operation, problem = agree(key[1], calls, members, joined)
        if problem:
            return [_failed(*key, members, problem)]
        response = {"set": key[0], "name": key[1], "ranks": members, "operation": operation}
        if operation["kind"] in ("add_set", "remove_set"):
            self._change_sets(operation)
        return [response]

    def _change_sets(self, operation: Message) -> None:
        """Assigns an id to a new process set, or removes a set."""
        if operation["kind"] == "remove_set":
            self._sets.pop(operation["id"], None)
            return
        if operation["ranks"] in self._sets.values():
            operation["known"] = True
            return
        operation["id"] = self._next_set
        self._sets[self._next_set] = operation["ranks"]
        self._next_set += 1

    def _join(self, rank: int) -> list[Message]:
        if self._gone:
            return [{"ranks": [rank], "joined": -1, **self._loss("join", [*self._gone])}]
        self._joined.append(rank)
        complete = []
        for key in list(self._waiting):
            complete += self._completed(key)
        if len(self._joined) == len(self._sets[0]):
            last, self._joined = self._joined[-1], []
            complete.append({"ranks": self._sets[0], "joined": last})
        return complete

    def _remove(self, rank: int, reason: Message) -> list[Message]:
        """Fails the operations of other ranks that wait for this rank, both current and later
        ones."""
        if rank in self._gone:
            return []
        self._gone[rank] = reason
        self._sends.pop(rank, None)
        failed = []
        for key, waiting in list(self._waiting.items()):
            if rank in self._sets.get(key[0], ()):
                del self._waiting[key]
                loss = self._loss(key[1], [rank])
                failed.append({**_failed(*key, list(waiting.calls), ""), **loss})
        if self._joined:
            failed.append({"ranks": self._joined, "joined": -1, **self._loss("join", [rank])})
            self._joined = []
        return failed

    def _loss(self, name: str, ranks: list[int]) -> Message:
        """The error of an operation whose missing ranks are gone."""
        gone = {rank: self._gone[rank] for rank in ranks}
        reasons = "; ".join(f"rank {rank} {reason['gone']}" for rank, reason in gone.items())
        lost = any(reason["lost"] for reason in gone.values())
        return {"error": f"'{name}' cannot complete: {reasons}", "gone": True, "lost": lost}

    def _send_all(self, responses: list[Message]) -> None:
        for rank, send in list(self._sends.items()):
            own = [response for response in responses if rank in response["ranks"]]
            if own:
                try:
                    send({"do": own})
                except (OSError, ValueError) as error:
                    # The rank may have left properly, with a "bye" message that has not been read
                    # yet, so elastic programs try to reconnect.
                    self.remove(rank, f"cannot be reached ({error})", lost=False)

    def _check_stalls(self) -> None:
        now = time.monotonic()
        for key, waiting in list(self._waiting.items()):
            age = now - waiting.since
            missing = [r for r in self._sets.get(key[0], ()) if r not in waiting.calls]
            text = f"'{key[1]}' has waited {age:.0f} s for ranks {missing} to submit it"
            if 0 < _STALL_LIMIT_S <= age:
                del self._waiting[key]
                self._send_all([_failed(*key, list(waiting.calls), text)])
            elif 0 < _STALL_WARNING_S <= age and not waiting.warned:
                waiting.warned = True
                logger.warning(text)


def _failed(set_id: int, name: str, ranks: list[int], text: str) -> Message:
    return {"set": set_id, "name": name, "ranks": ranks, "error": text}


def _fused(responses: list[Message]) -> list[Message]:
    """Marks reductions that are fused with the one before them."""
    before, size = None, 0
    for response in responses:
        operation = response.get("operation", {})
        key = _fusion_key(response) if operation.get("kind") == "allreduce" else None
        if key is not None and key == before and size + operation["bytes"] <= _FUSION_BYTES:
            response["fused"] = True
            size += operation["bytes"]
        else:
            before, size = key, operation.get("bytes", 0)
    return responses


def _fusion_key(response: Message) -> Any:
    operation = response["operation"]
    dtypes = set(operation["dtypes"])
    if operation["op"] not in ("sum", "mean", "min", "max") or len(dtypes) != 1:
        return None
    return response["set"], operation["op"], operation["scale"], dtypes.pop()
