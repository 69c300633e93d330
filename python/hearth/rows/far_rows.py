"""Files of HDFS that ranks read by themselves, near their blocks: in pieces of their format."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from hearth.rows.far_formats import FAR_FORMATS, FarFormat, sliced
from hearth.rows.far_input import FarPiece, whole
from hearth.rows.file_parts import Part, StoredFile, shares
from hearth.rows.file_reader import row_range
from hearth.rows.rank_files import Count, RankFiles, packed

if TYPE_CHECKING:
    import pyarrow as pa

# Footers are read in so many threads: each is two round trips.
_FOOTER_THREADS = 16
# With so many files for each rank shares of equal bytes have about equally many rows. With fewer
# a rank may get so many times its rows before shares are made of rows instead.
_MANY_FILES = 32
_UNEVEN = 1.5
# So do shares of so many bytes of a format whose files do not tell how many rows they have.
_UNCOUNTED_BYTES = 8 << 20


def _ignore(size: int, near: bool) -> None:
    """A count that nobody wants."""


@dataclass(frozen=True)
class FarRows(RankFiles):
    """Rows of files as the driver listed them; a rank's share follows from this alone.

    `columns`: (name, alias). `hosts`: near which the shares of the ranks are; empty: anywhere.
    `counts`: rows of each file's pieces, where ranks get equally many of them; empty: equally
    many bytes. `kind`: of FAR_FORMATS.
    """

    uri: str
    columns: tuple[tuple[str, str], ...]
    files: tuple[StoredFile, ...]
    hosts: tuple[frozenset[str], ...] = ()
    counts: tuple[tuple[int, ...], ...] = ()
    kind: str = "parquet"
    count: Count = field(default=_ignore, compare=False, repr=False)

    def placed(self, hosts: Sequence[frozenset[str]]) -> FarRows:
        return replace(self, hosts=tuple(hosts))

    def counting(self, count: Count) -> FarRows:
        return replace(self, count=count)

    def evened(self, world: int) -> FarRows:
        """The same, by rows where shares of bytes would be uneven: few pieces, small files. The
        files tell, unless they are many or large. Raises as read() does."""
        if world == 1 or len(self.files) >= _MANY_FILES * world:
            return self
        total = sum(file.size for file in self.files)
        if not self._format.counts_by_footers and total >= _UNCOUNTED_BYTES * world:
            return self
        with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
            parts = [whole(file) for file in self.files if file.size]
            found = list(pool.map(self._format.counted_pieces, parts))
        pieces = {part.uri: of_file for part, of_file in zip(parts, found, strict=True)}
        loads = [
            sum(
                piece.rows or 0
                for part in share
                for piece in pieces[part.uri]
                if part.begin <= piece.start < part.end
            )
            for share in self._shares(world)
        ]
        if max(loads) * world <= _UNEVEN * sum(loads):
            return self
        counts = [
            tuple(piece.rows or 0 for piece in pieces.get(file.uri, ())) for file in self.files
        ]
        return replace(self, counts=tuple(counts))

    def told(self, world: int) -> str:
        total = sum(file.size for file in self.files)
        what = f"{self.uri}: {len(self.files)} files with {total} bytes for {world} ranks"
        if self.counts:
            what += ", in equal numbers of rows"
            slices = [piece for rank in range(world) for piece in self._slices(rank, world)]
            loads = [(piece.end - piece.begin, piece.part.near) for piece in slices]
        else:
            loads = [(part.bytes, part.near) for share in self._shares(world) for part in share]
        if not self.hosts:
            return what
        near = sum(load for load, is_near in loads if is_near)
        share = 100 * near / max(1, sum(load for load, _ in loads))
        return f"{what}, {share:.0f} % of it on their own hosts"

    def read(self, rank: int, world: int) -> Iterator[pa.RecordBatch]:
        """The rows of `rank`, in the order of the files.

        Raises:
            ValueError: a file is not as the driver saw it, or lacks a column.
            OSError, HearthError: a file cannot be read.
        """
        if self.counts:
            slices = self._slices(rank, world)
            return itertools.chain.from_iterable(map(self.read_piece, slices))
        parts = self._share(rank, world)
        read = (self._format.read_part(part, self._names, self.count) for part in parts)
        return map(self._renamed, itertools.chain.from_iterable(read))

    def identity(self, rank: int, world: int) -> bytes:
        """As PiecedRows: files count by name, bytes and the time when they were written."""
        if self.counts:
            rows = [(s.part, s.number, s.begin, s.end) for s in self._slices(rank, world)]
            parts = [(p.uri, p.size, i, begin, end, p.modified_s) for p, i, begin, end in rows]
            return f"{rank} of {world} of {parts}".encode()
        parts = [(p.uri, p.size, p.begin, p.end, p.modified_s) for p in self._share(rank, world)]
        return f"{rank} of {world} of {parts}".encode()

    def pieces(self, rank: int, world: int) -> list[FarPiece]:
        """As PiecedRows; reads the files' footers. Raises as read() does."""
        if self.counts:
            return self._slices(rank, world)
        pieces_of = partial(self._format.pieces, count=self.count)
        with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
            found = pool.map(pieces_of, self._share(rank, world))
            return [piece for pieces in found for piece in pieces]

    def read_piece(self, piece: FarPiece) -> Iterator[pa.RecordBatch]:
        """As PiecedRows; raises as read() does."""
        batches = self._format.read_piece(piece, self._names, self.count)
        return map(self._renamed, sliced(piece, batches))

    @property
    def _format(self) -> FarFormat:
        return FAR_FORMATS[self.kind]

    @property
    def _names(self) -> list[str]:
        return [name for name, _ in self.columns]

    def _renamed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.rename_columns([alias for _, alias in self.columns])

    def _slices(self, rank: int, world: int) -> list[FarPiece]:
        """The rank's share by rows."""
        begin, end = row_range(sum(map(sum, self.counts)), rank, world)
        host: frozenset[str] = self.hosts[rank] if self.hosts else frozenset()
        found, at = [], 0
        for file, counts in zip(self.files, self.counts, strict=True):
            for number, rows in enumerate(counts):
                first, last = max(begin - at, 0), min(end - at, rows)
                if first < last:
                    found.append(FarPiece(whole(file, host), number, begin=first, end=last))
                at += rows
        return found

    def _share(self, rank: int, world: int) -> list[Part]:
        return self._shares(world)[rank]

    def _shares(self, world: int) -> list[list[Part]]:
        return _shares(self.files, self.hosts or (frozenset(),) * world)

    def __reduce__(self) -> tuple[Any, ...]:
        content = (self.uri, self.columns, self.files, self.hosts, self.counts, self.kind)
        return packed(FarRows, content)


@lru_cache(maxsize=4)  # a task asks several times
def _shares(files: tuple[StoredFile, ...], hosts: tuple[frozenset[str], ...]) -> list[list[Part]]:
    return shares(files, hosts, whole=False)
