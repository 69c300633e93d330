"""Checks that all members of a process set submitted the same operation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

# Fields that must be equal on all ranks, by kind of operation.
_EQUAL = {
    "allreduce": ("kind", "dtypes", "shapes", "op", "scale"),
    "allgather": ("kind", "dtypes"),
    "broadcast": ("kind", "dtypes", "shapes", "root"),
    "alltoall": ("kind", "dtypes"),
    "reducescatter": ("kind", "dtypes", "shapes", "op", "scale"),
    "barrier": ("kind",),
    "add_set": ("kind", "ranks"),
    "remove_set": ("kind", "id"),
}
_WORDS = {
    "kind": "operations",
    "dtypes": "data types",
    "shapes": "shapes",
    "op": "reductions",
    "scale": "prescale or postscale factors",
    "root": "root ranks",
    "ranks": "process sets",
    "id": "process sets",
}
_SIZES = {
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "complex64": 8,
    "complex128": 16,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
}

Call = Mapping[str, Any]


def agree(
    name: str, calls: Mapping[int, Call], members: Sequence[int], joined: Sequence[int]
) -> tuple[dict[str, Any], str]:
    """Returns (the operation, a description of the differences; "" if there are none).

    Args:
        calls: the submitted calls by rank. joined: members without a call, which add zeros.
    """
    first = calls[min(calls)]
    problem = _difference(name, calls) or _joined_problem(name, first, joined)
    if problem:
        return {}, problem
    operation = dict(first)
    kind = operation["kind"]
    if kind in ("allgather", "alltoall"):
        problem = _rows_problem(name, calls)
        operation["rows"] = [[shape[0] for shape in calls[rank]["shapes"]] for rank in members]
        if kind == "alltoall":
            operation["splits"] = [calls[rank]["splits"] for rank in members]
    if kind == "allreduce":
        pairs = zip(operation["shapes"], operation["dtypes"], strict=True)
        operation["bytes"] = sum(math.prod(shape) * _SIZES.get(kind, 1) for shape, kind in pairs)
    return operation, problem


def _difference(name: str, calls: Mapping[int, Call]) -> str:
    first = min(calls)
    for key in _EQUAL[calls[first]["kind"]]:
        for rank, call in sorted(calls.items()):
            if call.get(key) != calls[first].get(key):
                return (
                    f"mismatched {_WORDS[key]} for '{name}': rank {first} has "
                    f"{_shown(calls[first].get(key))}, rank {rank} has {_shown(call.get(key))}"
                )
    return ""


def _rows_problem(name: str, calls: Mapping[int, Call]) -> str:
    """Describes shapes that differ in more than their first dimension; "" if there are none."""
    first = min(calls)
    expected = [shape[1:] for shape in calls[first]["shapes"]]
    for rank, call in sorted(calls.items()):
        if [shape[1:] for shape in call["shapes"]] != expected:
            return (
                f"mismatched shapes for '{name}': only the first dimension may differ, but rank "
                f"{first} has {_shown(calls[first]['shapes'])}, rank {rank} has "
                f"{_shown(call['shapes'])}"
            )
    return ""


def _joined_problem(name: str, call: Call, joined: Sequence[int]) -> str:
    if not joined or call["kind"] == "barrier":
        return ""
    if call["kind"] == "allreduce" and call["op"] in ("sum", "mean", "adasum"):
        return ""
    what = call["kind"] + (f" by {call['op']}" if call["kind"] == "allreduce" else "")
    return f"'{name}': {what} is not supported while ranks {list(joined)} have called join()"


def _shown(value: Any) -> str:
    return str(value[0] if isinstance(value, list) and len(value) == 1 else value)
