"""Names for unnamed operations, numbered equally on all ranks."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

# Number of joins since the ranks connected. Names contain it, because before a join some ranks have
# submitted more operations than others.
_joins = 0
_numbers: defaultdict[tuple[str, int], Iterator[int]] = defaultdict(itertools.count)


def of_operation(kind: str, name: str | None, set_id: int) -> str:
    """The name by which ranks match an operation; it includes the operation's kind.

    Ranks must submit unnamed operations of a process set in the same order.
    """
    if name is not None:
        return f"{kind}.{name}"
    return f"{kind}.noname.{_joins}.{next(_numbers[kind, set_id])}"


def forget() -> None:
    """Restarts the numbers of unnamed operations and of joins; all ranks call it when they
    connect."""
    global _joins
    _joins = 0
    _numbers.clear()


def note_join() -> None:
    """Restarts the operation numbers after join(), so that they are equal on all ranks."""
    global _joins
    _joins += 1
    _numbers.clear()
