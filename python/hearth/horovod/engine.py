"""Submits this rank's operations by name, and runs them in the order that all ranks agree on.

Any thread may submit. The engine's thread receives the order from rank 0's coordinator and runs one
operation after another.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from hearth.errors import invalid
from hearth.horovod import operations
from hearth.horovod.control import Follower, Leader
from hearth.horovod.coordinator import Message
from hearth.horovod.errors import HorovodInternalError
from hearth.horovod.operations import Array, Exchange
from hearth.ranks.group import Ranks, note_loss
from hearth.ranks.place import Place

_JOIN = (0, "join")


@dataclass
class _Submitted:
    """An operation of this rank in flight."""

    arrays: Sequence[Array]
    future: Future[Any]


class Engine:
    """This rank's engine, connected to the other ranks until close().

    Attributes:
        rank, size: this process's rank, and the number of ranks.
        hosts: for each rank a string that is equal for ranks on one host.
        sets: the ranks of each process set, by the set's number; set 0 has all ranks.
    """

    def __init__(self, place: Place, number: int, identity: str, timeout_s: float):
        """Returns once all ranks are connected. `number`: how many groups this process had before.

        Raises:
            TimeoutError, ConnectionError, HearthError: not all ranks connected, or one failed.
        """
        self.rank, self.size = place.rank, place.world
        self._place, self._timeout_s = place, timeout_s
        self._prefix = f"horovod/{number}"
        self._lock = threading.Lock()
        self._pending: dict[tuple[int, str], _Submitted] = {}
        self._ended, self._lost = "", False
        link = Leader if place.rank == 0 else Follower
        self._link = link(place, f"{self._prefix}/control", identity, timeout_s)
        self.hosts = self._link.hosts
        self.sets: dict[int, list[int]] = {}
        self._exchanges: dict[int, Exchange] = {}
        try:
            self._add_set(0, list(range(place.world)))
        except BaseException:
            self._link.close()
            raise
        self._thread = threading.Thread(target=self._run, name="hearth-horovod", daemon=True)
        self._thread.start()

    def submit(
        self, call: Message, name: str, arrays: Sequence[Array] = (), set_id: int = 0
    ) -> Future[Any]:
        """Returns a Future of the operation's result, which raises HorovodInternalError if the
        operation fails.

        Args:
            call: the operation's fields, which are compared between the ranks; see
                hearth.horovod.agreement.
            arrays: contiguous arrays, which must not change until the result is available.
                all_reduce and broadcast store the result in them.

        Raises:
            ValueError: an operation of this name is in flight in the process set, or this rank is
                not a member of it.
            HorovodInternalError: another rank, or this one, has ended.
        """
        if self.rank not in self.sets.get(set_id, ()):
            raise invalid(f"'{name}': rank {self.rank} is not in process set {set_id}")
        return self._send((set_id, name), {"set": set_id, "name": name, "call": call}, arrays)

    def join(self) -> Future[int]:
        """Adds zeros to other ranks' reductions until all ranks have joined; returns the rank that
        joined last."""
        return self._send(_JOIN, {"join": True}, ())

    def _send(self, key: tuple[int, str], message: Message, arrays: Sequence[Array]) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if self._ended:
                text = f"'{key[1]}' was not submitted: {self._ended}"
                raise HorovodInternalError(text, self._lost)
            if key in self._pending:
                raise invalid(
                    f"an operation '{key[1]}' is in flight already: use a unique name for each "
                    "operation, or wait for the first one"
                )
            self._pending[key] = _Submitted(arrays, future)
            try:
                self._link.send(message)
            except OSError as error:
                del self._pending[key]
                raise HorovodInternalError(f"'{key[1]}' was not submitted: {error}") from error
        return future

    def close(self) -> None:
        """Leaves the group; operations in flight fail, also on ranks that wait for this one.
        Idempotent."""
        self._end("this rank has called shutdown()")
        self._link.close()
        self._thread.join()
        for exchange in self._exchanges.values():
            exchange.close()
        self._exchanges = {}

    def _run(self) -> None:
        while (message := self._link.receive()) is not None:
            batch: list[Message] = []
            for response in message["do"]:
                if batch and not response.get("fused"):
                    self._carry_out(batch)
                    batch = []
                batch.append(response)
            self._carry_out(batch)
        if self._pending:
            note_loss()
        self._end("rank 0 has ended", lost=True)

    def _end(self, reason: str, lost: bool = False) -> None:
        with self._lock:
            if not self._ended:
                self._ended, self._lost = reason, lost
            pending, self._pending = self._pending, {}
        for (_, name), submitted in pending.items():
            text = f"'{name}' did not complete: {self._ended}"
            submitted.future.set_exception(HorovodInternalError(text, self._lost))

    def _carry_out(self, batch: list[Message]) -> None:
        """Runs one operation, or several fused reductions."""
        first = batch[0]
        if "operation" not in first:
            self._complete(first)
            return
        with self._lock:
            own = [self._pending.pop((each["set"], each["name"]), None) for each in batch]
            if self._ended and None in own:
                return  # close() has already failed these operations
        calls = [response["operation"] for response in batch]
        arrays = [
            list(submitted.arrays) if submitted else _zeros(call)
            for submitted, call in zip(own, calls, strict=True)
        ]
        try:
            results = self._results(first["set"], calls, arrays)
        except Exception as error:
            names = ", ".join(f"'{response['name']}'" for response in batch)
            for waiting in filter(None, own):
                lost = self._exchanges[first["set"]].has_ended
                failed = HorovodInternalError(f"{names} failed: {error}", lost)
                failed.__cause__ = error
                waiting.future.set_exception(failed)
            return
        for submitted, result in zip(own, results, strict=True):
            if submitted is not None:
                submitted.future.set_result(result)

    def _complete(self, response: Message) -> None:
        joined = "joined" in response
        key = _JOIN if joined else (response["set"], response["name"])
        with self._lock:
            submitted = self._pending.pop(key, None)
        if submitted is None:
            return
        if "error" in response:
            if "gone" in response:
                note_loss()
            lost = response.get("lost", False)
            submitted.future.set_exception(HorovodInternalError(response["error"], lost))
        else:
            submitted.future.set_result(response["joined"])

    def _results(
        self, set_id: int, calls: list[Message], arrays: list[list[Array]]
    ) -> Sequence[Any]:
        """The result of each call. Only reductions can be fused."""
        call, exchange = calls[0], self._exchanges[set_id]
        if call["kind"] == "allreduce":
            whole = {**call, "dtypes": [kind for each in calls for kind in each["dtypes"]]}
            operations.all_reduce(exchange, whole, [array for each in arrays for array in each])
            return arrays
        return [self._result(exchange, call, arrays[0])]

    def _result(self, exchange: Exchange, call: Message, arrays: list[Array]) -> Any:
        kind = call["kind"]
        if kind == "add_set":
            return self._add_set(call["id"], call["ranks"]) if "known" not in call else None
        if kind == "remove_set":
            return self._remove_set(call["id"])
        if kind == "barrier":
            return exchange.run("barrier")
        if kind == "alltoall":
            return operations.all_to_all(exchange, call, arrays[0])
        carry_out: dict[str, Callable[..., Any]] = {
            "allgather": operations.all_gather,
            "broadcast": operations.broadcast,
            "reducescatter": operations.reduce_scatter,
        }
        found = carry_out[kind](exchange, call, arrays)
        return arrays if kind == "broadcast" else found

    def _add_set(self, number: int, members: list[int]) -> int:
        if self.rank in members:
            ranks = None
            if len(members) > 1:
                rendezvous = self._place.rendezvous_of(f"{self._prefix}/set{number}")
                index = members.index(self.rank)
                ranks = Ranks(rendezvous, index, len(members), self._timeout_s)
            self._exchanges[number] = Exchange(ranks, members, self.rank)
        self.sets[number] = members
        return number

    def _remove_set(self, number: int) -> bool:
        exchange = self._exchanges.pop(number, None)
        if exchange is not None:
            exchange.close()
        return self.sets.pop(number, None) is not None


def _zeros(call: Message) -> list[Array]:
    """Zeros as the input of a rank that has joined."""
    pairs = zip(call.get("shapes", ()), call.get("dtypes", ()), strict=True)
    return [np.zeros(math.prod(shape), storage_of(kind)).reshape(shape) for shape, kind in pairs]


def storage_of(kind: str) -> np.dtype[Any]:
    """The NumPy type that stores a data type."""
    return np.dtype("uint16" if kind == "bfloat16" else kind)
