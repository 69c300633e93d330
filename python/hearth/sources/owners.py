"""Assigns splits and rows to ranks in equal shares, preferring local data."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from hearth.errors import invalid
from hearth.sources.source import Piece, Split


def owners(splits: Sequence[Split], hosts: Sequence[frozenset[str]], ranks: int) -> list[int]:
    """The rank that reads each split. Deterministic.

    Shares are equal in rows if all row counts are known, otherwise in bytes. If splits are local to
    different ranks, a rank is first assigned splits of its host, up to its equal share. Otherwise
    ranks are assigned contiguous ranges. Each rank is assigned a split if there are enough.

    Args:
        splits: all splits of a source, in order.
        hosts: the names and addresses of each rank's host; empty if unknown.
        ranks: number of ranks.

    Raises:
        ValueError: `hosts` and `ranks` have different lengths, or `ranks` is not positive.
    """
    if ranks < 1 or (hosts and len(hosts) != ranks):
        raise invalid(f"splits cannot be assigned to {ranks} ranks on {len(hosts)} hosts")
    loads = [(split.rows or 0) if _counted(splits) else split.bytes for split in splits]
    local = _local_ranks(splits, hosts)
    return _by_host(loads, local, ranks) if len(set(local)) > 1 else _contiguous(loads, ranks)


def shares(
    splits: Sequence[Split], hosts: Sequence[frozenset[str]], ranks: int
) -> list[list[Split]]:
    """The splits that each rank reads, in order, assigned like by owners(), with the same
    arguments. Contiguous ranges are divided at rows if row counts are known, so shares differ by at
    most one row.
    """
    if _counted(splits) and len(set(_local_ranks(splits, hosts))) < 2:
        total = sum(split.rows or 0 for split in splits)
        ends = [rank * total // ranks for rank in range(ranks + 1)]
        return [list(_rows_in(splits, *both)) for both in itertools.pairwise(ends)]
    found: list[list[Split]] = [[] for _ in range(ranks)]
    for split, rank in zip(splits, owners(splits, hosts, ranks), strict=True):
        found[rank].append(split)
    return found


def joined(splits: Iterable[Split], host: frozenset[str] = frozenset()) -> Iterator[Split]:
    """Merges adjacent splits if all or none of them are local to `host`, and adjacent ranges of the
    same unit. The order does not change.
    """
    for _, run in itertools.groupby(splits, key=lambda split: bool(split.hosts & host)):
        every = list(run)
        pieces: list[Piece] = []
        for piece in itertools.chain.from_iterable(split.pieces for split in every):
            last = pieces[-1] if pieces else None
            if last and (last.file, last.key, last.end) == (piece.file, piece.key, piece.begin):
                pieces[-1] = replace(last, end=piece.end)
            else:
                pieces.append(piece)
        size = sum(split.bytes for split in every)
        yield replace(every[0], bytes=size, rows=_total(every), pieces=tuple(pieces))


def units(split: Split) -> list[Split]:
    """Divides a split into a split for each of its units."""
    count = max(1, len(split.pieces))
    each = [
        replace(split, bytes=split.bytes // count, rows=_rows_of(piece), pieces=(piece,))
        for piece in split.pieces
    ]
    return each or [split]


def _counted(splits: Sequence[Split]) -> bool:
    return all(split.rows is not None for split in splits)


def _total(splits: Sequence[Split]) -> int | None:
    return sum(split.rows or 0 for split in splits) if _counted(splits) else None


def _local_ranks(splits: Sequence[Split], hosts: Sequence[frozenset[str]]) -> list[frozenset[int]]:
    """The ranks to which each split is local."""
    return [
        frozenset(rank for rank, names in enumerate(hosts) if names & split.hosts)
        for split in splits
    ]


def _rows_of(piece: Piece) -> int | None:
    end = piece.rows if piece.end is None else piece.end
    return None if end is None else end - piece.begin


def _rows_in(splits: Sequence[Split], begin: int, end: int) -> Iterator[Split]:
    """The splits' rows [begin, end), counted over all splits."""
    at = 0
    for split in splits:
        first, rows = at, split.rows or 0
        at += rows
        if begin <= first and at <= end:
            if rows:
                yield split
        elif first < end and begin < at:
            pieces = tuple(_cut(split.pieces, begin - first, end - first))
            kept = min(at, end) - max(first, begin)
            yield replace(split, bytes=split.bytes * kept // rows, rows=kept, pieces=pieces)


def _cut(pieces: Sequence[Piece], begin: int, end: int) -> Iterator[Piece]:
    """The ranges' rows [begin, end), counted over all ranges."""
    at = 0
    for piece in pieces:
        rows = _rows_of(piece) or 0
        low, high = max(begin - at, 0), min(end - at, rows)
        at += rows
        if (low, high) == (0, rows):
            yield piece
        elif low < high:
            yield replace(piece, begin=piece.begin + low, end=piece.begin + high)


def _contiguous(loads: Sequence[int], ranks: int) -> list[int]:
    """Assigns each split to the rank whose equal share of the total contains its middle."""
    total, before, found = max(1, sum(loads)), 0, []
    for number, load in enumerate(loads):
        rank = (2 * before + load) * ranks // (2 * total)
        previous = found[-1] if found else -1
        # Leave enough splits that each later rank is assigned one.
        last = ranks - (len(loads) - number)
        found.append(max(previous, 0, last, min(rank, previous + 1, ranks - 1)))
        before += load
    return found


def _by_host(loads: Sequence[int], local: Sequence[frozenset[int]], ranks: int) -> list[int]:
    """Assigns splits to ranks on their hosts, up to an equal share; then the others, largest first,
    to the rank with the least load.
    """
    fair = -(-sum(loads) // ranks)
    taken = [0] * ranks
    found = [-1] * len(loads)
    # First assign splits with few local ranks, the largest first; the other splits fit more easily.
    for i in sorted(range(len(loads)), key=lambda i: (len(local[i]), -loads[i])):
        able = [rank for rank in sorted(local[i]) if taken[rank] + loads[i] <= fair]
        if able:
            found[i] = min(able, key=taken.__getitem__)
            taken[found[i]] += loads[i]
    rest = [i for i, rank in enumerate(found) if rank < 0]
    for i in sorted(rest, key=lambda i: -loads[i]):
        found[i] = min(range(ranks), key=lambda rank: (taken[rank], rank not in local[i]))
        taken[found[i]] += loads[i]
    return found
