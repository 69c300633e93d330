"""Runs one agreed operation on NumPy arrays through the core's collective.

Data types have Horovod's names; bfloat16 arrays are stored as uint16, as NumPy lacks the type. Data
that is not reduced is sent as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
# Data types that the core cannot add, and the wider types to use instead.
_WIDER = {
    "int8": np.int32,
    "int16": np.int32,
    "uint16": np.int32,
    "uint32": np.int64,
    "uint64": np.int64,
}


class Exchange:
    """The connected members of a process set; one thread uses it.

    `ranks`: a hearth.ranks Ranks; None if this process is the only member.
    """

    def __init__(self, ranks: Any, members: Sequence[int], rank: int):
        self.members = list(members)
        self.size = len(members)
        self.index = self.members.index(rank)
        self._ranks = ranks

    @property
    def has_ended(self) -> bool:
        """Whether the member that runs these members' rendezvous has ended, which makes operations
        fail."""
        return self._ranks is not None and self._ranks.rendezvous_ended

    def close(self) -> None:
        """Disconnects from the other members."""
        if self._ranks is not None:
            self._ranks.close()

    def run(self, operation: str, *arrays: Array, **how: Any) -> None:
        """Runs an operation of the core on (output, input). If there is only one member, copies the
        input to the output."""
        from hearth.native import _core

        if self._ranks is None:
            if len(arrays) == 2:
                np.copyto(arrays[0].reshape(-1), arrays[1].reshape(-1))
            return
        request = _core.Request(operation, *arrays)
        for key, value in how.items():
            setattr(request, key, value)
        if not self._ranks.try_run(request):
            self._ranks.submit(request)(self._ranks.timeout_s)

    def gathered(self, array: Array) -> list[Array]:
        """The arrays of all members, which must have equal shapes."""
        output = np.empty((self.size, array.nbytes), np.uint8)
        self.run("all_gather", output.reshape(-1), bytes_of(array))
        return [row.view(array.dtype).reshape(array.shape) for row in output]


def bytes_of(array: Array) -> Array:
    """The bytes of a contiguous array, in place."""
    return array.reshape(-1).view(np.uint8)


def all_reduce(exchange: Exchange, operation: Mapping[str, Any], arrays: Sequence[Array]) -> None:
    """Reduces arrays of one operation, or of several fused ones, in place."""
    kinds = operation["dtypes"]
    if len(arrays) > 1 and len(set(kinds)) == 1 and operation["op"] != "adasum":
        flat = np.concatenate([array.reshape(-1) for array in arrays])
        _reduce(exchange, operation, flat, kinds[0])
        start = 0
        for array in arrays:
            array.reshape(-1)[:] = flat[start : start + array.size]
            start += array.size
        return
    for array, kind in zip(arrays, kinds, strict=True):
        _reduce(exchange, operation, array.reshape(-1), kind)


def _reduce(exchange: Exchange, operation: Mapping[str, Any], flat: Array, kind: str) -> None:
    before, after = operation["scale"]
    work, finish = _reducible(flat, kind)
    _scale(work, before)
    if work.size:
        _REDUCTIONS.get(operation["op"], _by_core)(exchange, work, operation["op"])
    _scale(work, after)
    finish()


def _by_core(exchange: Exchange, work: Array, op: str) -> None:
    exchange.run("all_reduce", work, op=op)


def _product(exchange: Exchange, work: Array, _: str) -> None:
    parts = exchange.gathered(work)
    for part in parts[1:]:
        parts[0] = parts[0] * part
    work[:] = parts[0]


def _adasum(exchange: Exchange, work: Array, _: str) -> None:
    """Adds pairs of vectors, each minus half of the other's projection on it."""
    parts = [part.astype(np.float64) for part in exchange.gathered(work)]
    while len(parts) > 1:
        parts = [_adasum_of(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
    work[:] = parts[0]


def _adasum_of(a: Array, b: Array) -> Array:
    dot, a_square, b_square = a @ b, a @ a, b @ b
    a_part = 1.0 - dot / (2 * a_square) if a_square else 1.0
    b_part = 1.0 - dot / (2 * b_square) if b_square else 1.0
    return a_part * a + b_part * b


_REDUCTIONS: dict[str, Callable[[Exchange, Array, str], None]] = {
    "product": _product,
    "adasum": _adasum,
}


def _reducible(flat: Array, kind: str) -> tuple[Array, Callable[[], object]]:
    """(an array that the core can reduce in place, a function that converts it back to `flat`)."""
    if kind == "bfloat16":
        wide = (flat.astype(np.uint32) << 16).view(np.float32)
        return wide, lambda: flat.__setitem__(slice(None), _rounded(wide))
    if kind.startswith("complex"):
        return flat.view(np.float32 if kind == "complex64" else np.float64), lambda: None
    if kind in _WIDER:
        wide = flat.astype(_WIDER[kind])
        return wide, lambda: flat.__setitem__(slice(None), wide.astype(flat.dtype))
    return flat, lambda: None


def _rounded(wide: Array) -> Array:
    """Rounds float32 values to the nearest bfloat16, ties to even; returns their bits."""
    bits = wide.view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(wide), np.uint16(0x7FC0), rounded)


def _scale(work: Array, factor: float) -> None:
    """Multiplies in place: integers as float64, then truncated; float16 as float32."""
    if factor == 1.0 or not work.size:
        return
    if work.dtype.kind in "iub":
        work[:] = (work.astype(np.float64) * factor).astype(work.dtype)
    elif work.dtype == np.float16:
        work[:] = work.astype(np.float32) * np.float32(factor)
    else:
        work *= work.dtype.type(factor)


def all_gather(
    exchange: Exchange, operation: Mapping[str, Any], arrays: Sequence[Array]
) -> list[Array]:
    """Concatenates each array over the members, along the first dimension, which may differ."""
    results = []
    for number, array in enumerate(arrays):
        rows = [each[number] for each in operation["rows"]]
        result = np.empty((sum(rows), *array.shape[1:]), array.dtype)
        if result.nbytes:
            row = result.nbytes // len(result)
            counts = [count * row for count in rows]
            exchange.run("all_gather", bytes_of(result), bytes_of(array), counts=counts)
        results.append(result)
    return results


def broadcast(exchange: Exchange, operation: Mapping[str, Any], arrays: Sequence[Array]) -> None:
    """Overwrites the arrays with the root's."""
    for array in arrays:
        if array.nbytes:
            root = exchange.members.index(operation["root"])
            exchange.run("broadcast", bytes_of(array), peer=root)


def all_to_all(exchange: Exchange, operation: Mapping[str, Any], array: Array) -> list[Array]:
    """[rows received from all members, number of rows from each]."""
    splits = np.array(operation["splits"], np.int64)
    own, received = splits[exchange.index], splits[:, exchange.index]
    result = np.empty((int(received.sum()), *array.shape[1:]), array.dtype)
    row = array.dtype.itemsize * int(np.prod(array.shape[1:]))
    block = int(splits.max()) * row
    if block:
        sent, taken = (np.zeros((exchange.size, block), np.uint8) for _ in range(2))
        for part, data in zip(sent, np.split(array, np.cumsum(own)[:-1]), strict=True):
            part[: data.nbytes] = bytes_of(np.ascontiguousarray(data))
        exchange.run("all_to_all", taken.reshape(-1), sent.reshape(-1))
        bytes_of(result)[:] = np.concatenate(
            [part[: count * row] for part, count in zip(taken, received, strict=True)]
        )
    return [result, received.astype(np.int32)]


def reduce_scatter(
    exchange: Exchange, operation: Mapping[str, Any], arrays: Sequence[Array]
) -> list[Array]:
    """This member's rows of each reduction; the first members get one more row if necessary.
    Overwrites the arrays."""
    all_reduce(exchange, operation, arrays)
    results = []
    for array in arrays:
        each, more = divmod(len(array), exchange.size)
        start = exchange.index * each + min(exchange.index, more)
        results.append(array[start : start + each + (exchange.index < more)].copy())
    return results
