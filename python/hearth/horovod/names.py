"""Names of operations that a program gave none: numbered alike on all ranks."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

# How often all ranks have joined since they connected: some have submitted more before that.
_joins = 0
_numbers: defaultdict[tuple[str, int], Iterator[int]] = defaultdict(itertools.count)


def of_operation(kind: str, name: str | None, set_id: int) -> str:
    """The name by which ranks know an operation: those of two kinds never meet.

    Ranks must submit the operations without a name of a process set in the same order.
    """
    if name is not None:
        return f"{kind}.{name}"
    return f"{kind}.noname.{_joins}.{next(_numbers[kind, set_id])}"


def forget() -> None:
    """Begins anew, as all ranks do when they connect."""
    global _joins
    _joins = 0
    _numbers.clear()


def note_join() -> None:
    """All ranks have returned from join(): they number alike from here."""
    global _joins
    _joins += 1
    _numbers.clear()
