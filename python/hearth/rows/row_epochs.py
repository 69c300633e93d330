"""Rows of files that are read anew in each epoch: for sources that are larger than the disks.

Pieces (row groups) come in an order that follows from seed, rank and epoch; the trainer shuffles
rows within a window.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from hearth.rows.rank_files import Count, RankFiles

if TYPE_CHECKING:
    import pyarrow as pa


class PiecedRows(Protocol):
    """RankFiles that lie in pieces which can be read in any order, any number of times."""

    def pin(self) -> PiecedRows: ...
    def placed(self, hosts: Sequence[frozenset[str]]) -> PiecedRows: ...
    def counting(self, count: Count) -> PiecedRows: ...
    def told(self, world: int) -> str: ...

    def identity(self, rank: int, world: int) -> bytes:
        """What the rank's rows follow from: other bytes, other rows."""

    def pieces(self, rank: int, world: int) -> Sequence[Any]:
        """The rank's share of the rows."""

    def read_piece(self, piece: Any) -> Iterator[pa.RecordBatch]:
        """Its rows, in the same batches each time."""


@dataclass(frozen=True)
class RowEpochs(RankFiles):
    """The rows of `rows`, epoch after epoch."""

    rows: PiecedRows
    seed: int

    def pin(self) -> RowEpochs:
        return replace(self, rows=self.rows.pin())

    def placed(self, hosts: Sequence[frozenset[str]]) -> RowEpochs:
        return replace(self, rows=self.rows.placed(hosts))

    def counting(self, count: Count) -> RowEpochs:
        return replace(self, rows=self.rows.counting(count))

    def told(self, world: int) -> str:
        return self.rows.told(world)

    def files_hash(self, rank: int, world: int) -> int:
        """63 bits by which the rank's share can be told from another."""
        digest = hashlib.blake2b(self.rows.identity(rank, world), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 1

    def read(self, rank: int, world: int, first: int) -> Iterator[Iterator[pa.RecordBatch]]:
        """The rank's rows of the epochs `first`, `first` + 1 and so on, without an end.

        Memory: what the rows of one piece take while they are read. Raises as the rows do.
        """
        pieces = self.rows.pieces(rank, world)
        for epoch in itertools.count(first):
            order = epoch_order(len(pieces), f"{self.seed} {rank} {epoch}")
            yield itertools.chain.from_iterable(self.rows.read_piece(pieces[i]) for i in order)


def epoch_order(count: int, key: str) -> list[int]:
    """The numbers below `count`, ordered by hashes that follow from the key: the same on every
    machine and with every version of Python."""

    def place(number: int) -> bytes:
        return hashlib.blake2b(f"{key} {number}".encode(), digest_size=16).digest()

    return sorted(range(count), key=place)
