"""Assigns splits to ranks: near their hosts, in equal shares."""

from __future__ import annotations

from collections.abc import Sequence

from hearth.sources.source import Split


def owners(splits: Sequence[Split], hosts: Sequence[frozenset[str]], ranks: int) -> list[int]:
    """The rank that reads each split; it follows from the arguments alone.

    Shares are equal by rows where all splits know theirs, else by bytes. With hosts, a rank gets
    splits of its host first, up to its equal share. Without, or where no split is on a rank's host,
    ranks get contiguous ranges of splits. Each rank gets a split if there are enough.

    Args:
        splits: all splits of a source, in order.
        hosts: the names and addresses of each rank's host; empty: unknown.
        ranks: how many there are.

    Raises:
        ValueError: `hosts` has another length than `ranks`, or `ranks` is not positive.
    """
    if ranks < 1 or (hosts and len(hosts) != ranks):
        raise ValueError(f"splits cannot be assigned to {ranks} ranks on {len(hosts)} hosts")
    counted = all(split.rows is not None for split in splits)
    loads = [(split.rows or 0) if counted else split.bytes for split in splits]
    near = [
        frozenset(rank for rank, names in enumerate(hosts) if names & split.hosts)
        for split in splits
    ]
    return _by_host(loads, near, ranks) if any(near) else _contiguous(loads, ranks)


def _contiguous(loads: Sequence[int], ranks: int) -> list[int]:
    """Each split goes where its middle lies in the ranks' equal shares of the total."""
    total, before, found = max(1, sum(loads)), 0, []
    for number, load in enumerate(loads):
        rank = (2 * before + load) * ranks // (2 * total)
        previous = found[-1] if found else -1
        # No rank is left out, neither in the middle nor at the end.
        last = ranks - (len(loads) - number)
        found.append(max(previous, 0, last, min(rank, previous + 1, ranks - 1)))
        before += load
    return found


def _by_host(loads: Sequence[int], near: Sequence[frozenset[int]], ranks: int) -> list[int]:
    """A split goes to a rank that has it near, as long as that has not its equal share; the rest,
    largest first, to the rank with the least."""
    fair = -(-sum(loads) // ranks)
    taken = [0] * ranks
    found = [-1] * len(loads)
    # First what few ranks have near, large before small: the others fit in later, too.
    for i in sorted(range(len(loads)), key=lambda i: (len(near[i]), -loads[i])):
        able = [rank for rank in sorted(near[i]) if taken[rank] + loads[i] <= fair]
        if able:
            found[i] = min(able, key=taken.__getitem__)
            taken[found[i]] += loads[i]
    rest = [i for i, rank in enumerate(found) if rank < 0]
    for i in sorted(rest, key=lambda i: -loads[i]):
        found[i] = min(range(ranks), key=lambda rank: (taken[rank], rank not in near[i]))
        taken[found[i]] += loads[i]
    return found
