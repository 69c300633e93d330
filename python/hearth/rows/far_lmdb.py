"""The records of an LMDB in HDFS, of which each rank fetches the pages that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hearth.files.hadoop_shell import use_core_as_hadoop_user
from hearth.rows.far_input import check, whole
from hearth.rows.far_listing import list_stored
from hearth.rows.file_parts import StoredFile, dealt
from hearth.rows.file_reader import row_range
from hearth.rows.file_rows import frame_of_parts
from hearth.rows.rank_files import Count, RankFiles, packed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

# So many parts for each rank that equal numbers of them have about equally many records.
_PARTS_PER_RANK = 64
_PART_BYTES = 64 << 20  # as the row groups of a Parquet file: they are what -spill off shuffles


@dataclass(frozen=True)
class LmdbPart:
    """Records that lie beside each other in key order: those from `first_key` on, `count` of them
    or else all before `end_key`. `at`: the byte near which they lie."""

    first_key: bytes
    end_key: bytes | None = None
    count: int | None = None
    at: int = 0


def _ignore(size: int, near: bool) -> None:
    """A count that nobody wants."""


@dataclass(frozen=True)
class FarLmdb(RankFiles):
    """The Datum records of the data file `file`, for `world` ranks; PiecedRows, too.

    `hosts`: near which the ranks are; empty: anywhere, and they have their records in key order.
    """

    file: StoredFile
    records: int
    parts: tuple[LmdbPart, ...]
    world: int
    hosts: tuple[frozenset[str], ...] = ()
    count: Count = field(default=_ignore, compare=False, repr=False)

    @classmethod
    def find(cls, session: Any, uri: str, world: int) -> FarLmdb:
        """That in a folder, or the one file. Reads the upper levels of its tree, all of them where
        it is small.

        Raises:
            HearthError: it is not there, is no LMDB, is damaged or cannot be read.
        """
        from hearth import HearthError
        from hearth.native._core import cut_lmdb, divide_lmdb

        files = list_stored(session, uri)
        data = [file for file in files if file.uri.endswith("/data.mdb")]
        if not data and len(files) > 1:
            raise HearthError(f"{uri} is no LMDB: it has no data.mdb")
        file = (data or files)[0]
        use_core_as_hadoop_user()
        try:
            wanted = max(_PARTS_PER_RANK * world, file.size // _PART_BYTES)
            records, cuts = cut_lmdb(file.uri, wanted)
            if cuts:
                ends = [*(key for key, _ in cuts[1:]), None]
                parts = [
                    LmdbPart(key, end, None, at) for (key, at), end in zip(cuts, ends, strict=True)
                ]
            else:
                records, keys = divide_lmdb(file.uri, world)
                ranges = [row_range(records, part, world) for part in range(world)]
                parts = [
                    LmdbPart(key, None, end - begin, file.size * part // world)
                    for part, (key, (begin, end)) in enumerate(zip(keys, ranges, strict=True))
                ]
        except (OSError, ValueError) as error:
            raise HearthError(str(error)) from None
        return cls(file, records, tuple(parts), world)

    def placed(self, hosts: Sequence[frozenset[str]]) -> FarLmdb:
        return replace(self, hosts=tuple(hosts))

    def counting(self, count: Count) -> FarLmdb:
        return replace(self, count=count)

    def told(self, world: int) -> str:
        what = f"{self.file.uri}: an LMDB of {self.records} records for {world} ranks"
        if not self.hosts:
            return what
        near = sum(near for share in self._shares(world) for _, near in share)
        return f"{what}, {100 * near / len(self.parts):.0f} % of it on their own hosts"

    def read(self, rank: int, world: int) -> Iterator[pa.RecordBatch]:
        """The records of `rank`, in key order, with the columns of DATUM_SCHEMA.

        Raises:
            ValueError: the file is not as the driver saw it.
            OSError, HearthError: it is damaged, or cannot be read.
        """
        for piece in _in_a_row(self.pieces(rank, world)):
            yield from self.read_piece(piece)

    def identity(self, rank: int, world: int) -> bytes:
        """As PiecedRows."""
        file = (self.file.uri, self.file.size, self.file.modified_ms)
        keys = [(part.first_key, part.end_key, part.count) for part, _ in self.pieces(rank, world)]
        return f"{rank} of {world} of {file} {keys}".encode()

    def pieces(self, rank: int, world: int) -> list[tuple[LmdbPart, bool]]:
        """As PiecedRows: parts, and whether the rank has them on its host."""
        return self._shares(world)[rank]

    def read_piece(self, piece: tuple[LmdbPart, bool]) -> Iterator[pa.RecordBatch]:
        """As PiecedRows; raises as read() does."""
        import pyarrow as pa

        from hearth.native._core import DatumRows, lmdb_rows

        part, near = piece
        use_core_as_hadoop_user()
        check(whole(self.file))
        if part.count is None:
            rows = lmdb_rows(self.file.uri, part.first_key, part.end_key)
        else:
            rows = DatumRows(self.file.uri, part.first_key, part.count)
        told = 0
        while (batch := rows.next()) is not None:
            self.count(rows.fetched - told, near)
            told = rows.fetched
            yield pa.record_batch(batch)

    def frame(self, spark: SparkSession) -> DataFrame:
        """All records as a DataFrame with a partition per rank."""
        return frame_of_parts(self, self.world, spark)

    def _shares(self, world: int) -> list[list[tuple[LmdbPart, bool]]]:
        return _shares(self.file, self.parts, self.hosts, world)

    def __reduce__(self) -> tuple[Any, ...]:
        content = (self.file, self.records, self.parts, self.world, self.hosts)
        return packed(FarLmdb, content)


def _in_a_row(pieces: Sequence[tuple[LmdbPart, bool]]) -> Iterator[tuple[LmdbPart, bool]]:
    """Those that follow each other as one: each begins with a walk down the tree."""
    joined: tuple[LmdbPart, bool] | None = None
    for part, near in pieces:
        if joined is not None and (joined[0].end_key, joined[1]) == (part.first_key, near):
            joined = replace(joined[0], end_key=part.end_key), near
            continue
        if joined is not None:
            yield joined
        joined = part, near
    if joined is not None:
        yield joined


@lru_cache(maxsize=4)  # a task asks several times
def _shares(
    file: StoredFile, parts: tuple[LmdbPart, ...], hosts: tuple[frozenset[str], ...], world: int
) -> list[list[tuple[LmdbPart, bool]]]:
    if not hosts:
        ranges = [row_range(len(parts), rank, world) for rank in range(world)]
        return [[(part, False) for part in parts[begin:end]] for begin, end in ranges]
    near = [
        frozenset(rank for rank, names in enumerate(hosts) if names & _hosts_at(file, part.at))
        for part in parts
    ]
    taken = dealt([1] * len(parts), near, world)
    return [[(parts[i], rank in near[i]) for i in sorted(mine)] for rank, mine in enumerate(taken)]


def _hosts_at(file: StoredFile, at: int) -> frozenset[str]:
    """The hosts that have a byte of the file."""
    return next((b.hosts for b in file.blocks if b.begin <= at < b.end), frozenset())
