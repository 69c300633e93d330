"""Horovod's reductions, and the fields of a call that describe them."""

from __future__ import annotations

from typing import Any

from hearth.errors import UnimplementedError, invalid

Average, Sum, Adasum, Min, Max, Product = range(6)
_NAMES = {
    Average: "mean",
    Sum: "sum",
    Adasum: "adasum",
    Min: "min",
    Max: "max",
    Product: "product",
}


def chosen(op: int | None, average: bool | None) -> int:
    """The reduction of a call with `op`, or the older `average`.

    Raises:
        ValueError: both were given, or the reduction is unknown.
    """
    if average is not None:
        if op is not None:
            raise invalid("pass op= or average=, not both: average=True is op=Average")
        return Average if average else Sum
    op = Average if op is None else op
    if op not in _NAMES:
        raise invalid(f"op={op!r}: it must be Average, Sum, Adasum, Min, Max or Product")
    return op


def reduction(op: int, prescale: float, postscale: float, size: int) -> dict[str, Any]:
    """The fields of a call that describe its reduction.

    Raises:
        NotImplementedError: Adasum with a number of ranks that is not a power of 2.
    """
    if op == Adasum and size & (size - 1):
        raise UnimplementedError(
            f"Adasum combines pairs of ranks, and {size} is not a power of 2: use op=Average"
        )
    return {"op": _NAMES[op], "scale": [float(prescale), float(postscale)]}
