"""Operations and checks of arguments that are the same for every framework."""

from __future__ import annotations

from collections.abc import Sequence

from hearth.errors import InvalidArgumentError, invalid
from hearth.horovod import current, names, reductions
from hearth.horovod.process_sets import ProcessSet, global_process_set

NO_ROWS = "a scalar has no rows to distribute: pass a tensor with a first dimension"


def join(device: int = -1) -> int:
    """Adds zeros to the other ranks' reductions until all ranks have called join().

    Returns the rank that joined last. Raises HorovodInternalError if a rank is lost.
    """
    last = current.engine().join().result()
    names.note_join()
    return last


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns once all ranks of the process set have called barrier(). Raises like join()."""
    number = set_id(process_set)
    current.wait({"kind": "barrier"}, names.of_operation("barrier", None, number), number)


def set_id(process_set: ProcessSet) -> int:
    """A process set's number. Raises ValueError if it is not registered."""
    if process_set.process_set_id is None:
        raise _not_registered(process_set)
    return process_set.process_set_id


def size_of(process_set: ProcessSet) -> int:
    """The number of a process set's ranks. Raises ValueError if it is not registered."""
    size = process_set.size()
    if size is None:
        raise _not_registered(process_set)
    return size


def _not_registered(process_set: ProcessSet) -> InvalidArgumentError:
    return invalid(f"{process_set} is not registered: call add_process_set() on all ranks")


def check_root(root_rank: int, process_set: ProcessSet) -> None:
    """Raises ValueError if the root is not in the process set."""
    set_id(process_set)
    ranks = process_set.ranks or []
    if root_rank not in ranks:
        raise invalid(f"root_rank={root_rank} is not in the process set, whose ranks are {ranks}")


def check_scatter(op: int) -> None:
    """Raises ValueError for a reduction that reducescatter lacks."""
    if op not in (reductions.Average, reductions.Sum):
        raise invalid("reducescatter supports op=Average and op=Sum only")


def splits_of(rows: int, given: Sequence[int] | None, members: int) -> list[int]:
    """The number of rows for each member: `given`, or equal numbers. Raises ValueError if their sum
    is not `rows`."""
    if given is None:
        if rows % members:
            raise invalid(
                f"alltoall: {rows} rows cannot be divided equally among {members} ranks: give "
                "splits="
            )
        return [rows // members] * members
    sent = [int(each) for each in given]
    if len(sent) != members or min(sent) < 0 or sum(sent) != rows:
        raise invalid(
            f"alltoall: splits={sent} must be {members} numbers whose sum is the number of rows, "
            f"{rows}"
        )
    return sent
