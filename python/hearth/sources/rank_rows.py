"""Rows of files as the ranks of a run read them: each its share, once or anew in each epoch."""

from __future__ import annotations

import copy
import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.sources.owners import joined, shares, units
from hearth.sources.source import Source, Split

if TYPE_CHECKING:
    import pyarrow as pa

# Called with the number of bytes that were read, and whether the rank's host has them.
NearCount = Callable[[int, bool], None]


@dataclass(frozen=True)
class RankRows:
    """Immutable; travels in Spark's task closure.

    `seed`: of rows that ranks read anew in each epoch; None: they spool them. `hosts`: the names
    and addresses of the host of each rank, near which its share is; empty: unknown. Shares stay
    with their ranks for the whole run.
    """

    source: Source
    seed: int | None = None
    hosts: tuple[frozenset[str], ...] = ()

    def pin(self, spark: Any = None) -> RankRows:
        """The same with the files that there are now; raises as Source.pin() does."""
        return replace(self, source=self.source.pin(spark))

    def placed(self, hosts: Sequence[frozenset[str]]) -> RankRows:
        """The same with shares near these hosts, one for each rank."""
        return replace(self, hosts=tuple(hosts))

    def placement(self, world: int) -> str:
        """A line about the shares; empty where no host can be nearer than another."""
        if not self.source.remote:
            return ""
        parts = self._shares(world)
        loads = [
            (split.bytes, bool(split.hosts & self._host(rank)))
            for rank, share in enumerate(parts)
            for split in share
        ]
        total = sum(size for size, _ in loads)
        text = f"{self.source.uri}: {self.source.extent} for {world} ranks"
        rows = [sum(split.rows or 0 for split in share) for share in parts]
        if max(rows) > 0 and max(rows) - min(rows) <= 1:
            text += ", in equal numbers of rows"
        if not self.hosts:
            return text
        near = sum(size for size, is_near in loads if is_near)
        return f"{text}, {100 * near / max(1, total):.0f} % of it on their own hosts"

    def read(
        self, rank: int, world: int, count: NearCount | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of `rank`, in the order of the files; raises as Source.read() does."""
        return self._read(rank, joined(self._shares(world)[rank], self._host(rank)), count)

    def epochs(
        self, rank: int, world: int, first: int, count: NearCount | None = None
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        """The rank's rows of the epochs `first`, `first` + 1 and so on, without an end.

        Units of files (row groups) come in an order that follows from seed, rank and epoch. Raises
        as Source.read() does.
        """
        pieces = list(self._units(rank, world))
        for epoch in itertools.count(first):
            order = epoch_order(len(pieces), f"{self.seed} {rank} {epoch}")
            yield self._read(rank, [pieces[i] for i in order], count)

    def files_hash(self, rank: int, world: int) -> int:
        """63 bits that identify the rank's share."""
        pieces = [
            (p.file, p.key, p.begin, p.end) for s in self._units(rank, world) for p in s.pieces
        ]
        text = f"{rank} of {world} of {self.source.identity()} {pieces}"
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 1

    def _units(self, rank: int, world: int) -> Iterator[Split]:
        for split in joined(self._shares(world)[rank], self._host(rank)):
            yield from units(split)

    def _shares(self, world: int) -> list[list[Split]]:
        return shares(self.source.splits(), self.hosts, world)

    def _host(self, rank: int) -> frozenset[str]:
        return self.hosts[rank] if self.hosts else frozenset()

    def _read(
        self, rank: int, splits: Sequence[Split] | Iterator[Split], count: NearCount | None
    ) -> Iterator[pa.RecordBatch]:
        host = self._host(rank)
        source = copy.copy(self.source)  # goes with the units that it has open
        for split in splits:
            near = bool(split.hosts & host)
            noted = None if count is None else partial(_noted, count, near)
            yield from source.read(split, noted)


def _noted(count: NearCount, near: bool, size: int) -> None:
    count(size, near)


def epoch_order(count: int, key: str) -> list[int]:
    """The numbers below `count`, ordered by hashes that follow from the key: the same on every
    machine and with every version of Python."""

    def place(number: int) -> bytes:
        return hashlib.blake2b(f"{key} {number}".encode(), digest_size=16).digest()

    return sorted(range(count), key=place)
