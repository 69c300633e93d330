"""Parquet files of HDFS that ranks read by themselves, near their blocks."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hearth.rows.far_reader import RowGroup, read_group, read_parts, row_groups
from hearth.rows.file_parts import Part, StoredFile, shares
from hearth.rows.rank_files import Count, RankFiles

if TYPE_CHECKING:
    import pyarrow as pa

# Footers are read in so many threads: each is two round trips.
_FOOTER_THREADS = 16


def _ignore(size: int, near: bool) -> None:
    """A count that nobody wants."""


@dataclass(frozen=True)
class FarRows(RankFiles):
    """Rows of Parquet files as the driver listed them; a rank's share follows from this alone.

    `columns`: (name, alias). `hosts`: near which the shares of the ranks are; empty: anywhere.
    """

    uri: str
    columns: tuple[tuple[str, str], ...]
    files: tuple[StoredFile, ...]
    hosts: tuple[frozenset[str], ...] = ()
    count: Count = field(default=_ignore, compare=False, repr=False)

    def placed(self, hosts: Sequence[frozenset[str]]) -> FarRows:
        return replace(self, hosts=tuple(hosts))

    def counting(self, count: Count) -> FarRows:
        return replace(self, count=count)

    def told(self, world: int) -> str:
        parts = [part for share in self._shares(world) for part in share]
        total = sum(part.bytes for part in parts)
        near = sum(part.bytes for part in parts if part.near)
        what = f"{self.uri}: {len(self.files)} files with {total} bytes for {world} ranks"
        if not self.hosts:
            return what
        return f"{what}, {100 * near / max(1, total):.0f} % of it on their own hosts"

    def read(self, rank: int, world: int) -> Iterator[pa.RecordBatch]:
        """The rows of `rank`, in the order of the files.

        Raises:
            ValueError: a file is not as the driver saw it, or lacks a column.
            OSError, HearthError: a file cannot be read.
        """
        return map(self._renamed, read_parts(self._share(rank, world), [], self._names, self.count))

    def identity(self, rank: int, world: int) -> bytes:
        """As PiecedRows: files count by name, bytes and the time when they were written."""
        parts = [(p.uri, p.size, p.begin, p.end, p.modified_s) for p in self._share(rank, world)]
        return f"{rank} of {world} of {parts}".encode()

    def pieces(self, rank: int, world: int) -> list[RowGroup]:
        """As PiecedRows; reads the files' footers. Raises as read() does."""
        with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
            found = pool.map(lambda part: row_groups(part, self.count), self._share(rank, world))
            return [group for groups in found for group in groups]

    def read_piece(self, piece: RowGroup) -> Iterator[pa.RecordBatch]:
        """As PiecedRows; raises as read() does."""
        return map(self._renamed, read_group(piece, self._names, self.count))

    @property
    def _names(self) -> list[str]:
        return [name for name, _ in self.columns]

    def _renamed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.rename_columns([alias for _, alias in self.columns])

    def _share(self, rank: int, world: int) -> list[Part]:
        return self._shares(world)[rank]

    def _shares(self, world: int) -> list[list[Part]]:
        return _shares(self.files, self.hosts or (frozenset(),) * world)

    def __reduce__(self) -> tuple[Any, ...]:
        """A tenth of the bytes: for a terabyte in 8,000 files 120 KB instead of 1.4 MB."""
        content = (self.uri, self.columns, self.files, self.hosts)
        return _unpacked, (zlib.compress(pickle.dumps(content)),)


def _unpacked(packed: bytes) -> FarRows:
    return FarRows(*pickle.loads(zlib.decompress(packed)))


@lru_cache(maxsize=4)  # a task asks several times
def _shares(files: tuple[StoredFile, ...], hosts: tuple[frozenset[str], ...]) -> list[list[Part]]:
    return shares(files, hosts, whole=False)
