"""Rows of files for the ranks of a run. Each rank reads its share, once or again in each epoch."""

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

# Called with the number of bytes read, and whether the rank's host stores them.
LocalityCount = Callable[[int, bool], None]


@dataclass(frozen=True)
class RankRows:
    """Divides a source's rows among ranks. Immutable; sent to tasks in Spark's closure.

    `seed`: set if ranks read the rows again in each epoch; None if they spool them. `hosts`: names
    and addresses of each rank's host, to give ranks local shares; empty if unknown. A rank's share
    does not change during a run.
    """

    source: Source
    seed: int | None = None
    hosts: tuple[frozenset[str], ...] = ()

    def pin(self, spark: Any = None) -> RankRows:
        """Pins the current files. Raises like Source.pin()."""
        return replace(self, source=self.source.pin(spark))

    def placed(self, hosts: Sequence[frozenset[str]]) -> RankRows:
        """Sets the ranks' hosts, so that shares are assigned by locality."""
        return replace(self, hosts=tuple(hosts))

    def placement(self, world: int) -> str:
        """A log line about the shares; empty if no data is local to a host."""
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
        local = sum(size for size, is_local in loads if is_local)
        return f"{text}, {100 * local / max(1, total):.0f} % of it on their own hosts"

    def read(
        self, rank: int, world: int, count: LocalityCount | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Reads the rows of `rank` in file order. Raises like Source.read()."""
        return self._read(rank, joined(self._shares(world)[rank], self._host(rank)), count)

    def epochs(
        self, rank: int, world: int, first: int, count: LocalityCount | None = None
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        """Reads the rank's rows for epochs `first`, `first` + 1 and so on, without end.

        The order of the files' units (such as row groups) depends on seed, rank and epoch. Raises
        like Source.read().
        """
        pieces = list(self._units(rank, world))
        for epoch in itertools.count(first):
            order = epoch_order(len(pieces), f"{self.seed} {rank} {epoch}")
            yield self._read(rank, [pieces[i] for i in order], count)

    def files_hash(self, rank: int, world: int) -> int:
        """A 63-bit hash that identifies the rank's share."""
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
        self, rank: int, splits: Sequence[Split] | Iterator[Split], count: LocalityCount | None
    ) -> Iterator[pa.RecordBatch]:
        host = self._host(rank)
        source = copy.copy(self.source)  # the copy has its own open units
        for split in splits:
            local = bool(split.hosts & host)
            noted = None if count is None else partial(_count_read, count, local)
            yield from source.read(split, noted)


def _count_read(count: LocalityCount, local: bool, size: int) -> None:
    count(size, local)


def epoch_order(count: int, key: str) -> list[int]:
    """The numbers below `count`, sorted by a hash of `key` and the number: the same order on every
    machine and in every Python version.
    """

    def key_of(number: int) -> bytes:
        return hashlib.blake2b(f"{key} {number}".encode(), digest_size=16).digest()

    return sorted(range(count), key=key_of)
