"""Process sets: subsets of the ranks that run operations among themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hearth.errors import invalid
from hearth.horovod import current


class ProcessSet:
    """A subset of the ranks.

    Attributes:
        process_set_id: its number; None before it is registered and after it is removed.
        ranks: the global ranks of its members, in ascending order.
    """

    process_set_id: int | None = None
    ranks: list[int] | None = None

    def __init__(self, ranks_or_comm: Sequence[int]):
        """Raises ValueError unless `ranks_or_comm` is a sequence of distinct ranks: MPI
        communicators are not supported."""
        try:
            ranks = [int(rank) for rank in ranks_or_comm]
        except TypeError:
            raise invalid(
                f"ProcessSet({ranks_or_comm!r}): pass a sequence of ranks; MPI communicators "
                "are not supported"
            ) from None
        if len(set(ranks)) != len(ranks):
            raise invalid(f"ProcessSet({ranks}): a rank occurs more than once")
        self.ranks = sorted(ranks)

    def size(self) -> int | None:
        """The number of members; None when the set is not registered."""
        members = self._members()
        return None if members is None else len(members)

    def rank(self) -> int | None:
        """This process's number among the members; None when the set is not registered.

        Raises:
            ValueError: this process is not a member.
        """
        members = self._members()
        if members is None:
            return None
        own = current.engine().rank
        if own not in members:
            raise invalid(f"rank {own} is not in process set {members}")
        return members.index(own)

    def included(self) -> bool | None:
        """Whether this process is a member; None when the set is not registered."""
        members = self._members()
        return None if members is None else current.engine().rank in members

    def _members(self) -> list[int] | None:
        """The ranks; None when the set is not registered."""
        if self.process_set_id is None:
            return None
        members = current.engine().sets.get(self.process_set_id)
        if members is None:
            raise invalid(f"process set {self.process_set_id} no longer exists")
        return members

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProcessSet):
            return NotImplemented
        return self.ranks == other.ranks and self.process_set_id == other.process_set_id

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"

    __repr__ = __str__


class _Global(ProcessSet):
    def __init__(self) -> None:
        self.process_set_id = 0


# All ranks. Its `ranks` are known after init().
global_process_set = _Global()


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Registers a process set, and returns it. All ranks call it with the same set.

    Raises:
        ValueError: the set has no ranks or unknown ranks, or is registered already.
        HorovodInternalError: the ranks passed different sets.
    """
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    size = current.engine().size
    if process_set.process_set_id is not None:
        raise invalid(f"{process_set} is registered already")
    ranks = process_set.ranks
    if not ranks:
        raise invalid(f"a process set has no ranks: pass ranks from 0 to {size - 1}")
    if ranks[0] < 0 or ranks[-1] >= size:
        raise invalid(
            f"process set {ranks} has ranks that do not exist: pass ranks from 0 to {size - 1}"
        )
    found = current.wait({"kind": "add_set", "ranks": ranks}, "process_set.add")
    if found is None:
        raise invalid(f"a process set of the ranks {ranks} is registered already")
    process_set.process_set_id = found
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a process set; all ranks call it. Returns False if the set is not registered, or
    global."""
    number = process_set.process_set_id
    if not number or number not in current.engine().sets:
        return False
    found = current.wait({"kind": "remove_set", "id": number}, "process_set.remove")
    process_set.process_set_id = None
    return bool(found)


def get_process_set_ids_and_ranks() -> dict[int, list[int]]:
    """The ranks of each registered process set, by the set's number."""
    return {number: list(ranks) for number, ranks in current.engine().sets.items()}


def register(process_sets: Any) -> None:
    """Implements the argument `process_sets` of init()."""
    global_process_set.ranks = list(range(current.engine().size))
    for each in process_sets if isinstance(process_sets, list | tuple) else ():
        each.process_set_id = None  # the id may be from an earlier init()
        add_process_set(each)
