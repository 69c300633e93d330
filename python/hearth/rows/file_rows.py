"""Rows that ranks read by themselves, from files that the driver pins: Parquet or a database."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.files.uri import local_path
from hearth.rows.file_reader import (
    BATCH_ROWS,
    Piece,
    pieces_of,
    read_piece,
    read_rows,
    row_range,
    select,
)
from hearth.rows.pinned_files import PinnedFiles, pin_files
from hearth.rows.rank_files import RankFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

# What a part of a database has, as Spark declares it.
DATUM_SCHEMA = "id string, label int, channels int, height int, width int, encoded int, data binary"


@dataclass(frozen=True)
class FileRows(RankFiles):
    """Rows of local Parquet files."""

    uri: str
    columns: tuple[str, ...]
    pinned: PinnedFiles | None = None  # set by the launch, once for all ranks and attempts

    def pin(self) -> FileRows:
        """The same with the files that there are now; raises ValueError or OSError."""
        return replace(self, pinned=self.pinned or pin_files(self.uri))

    def read(self, rank: int, world: int) -> Iterator[pa.RecordBatch]:
        """The rows of `rank`, in file order; raises as read_rows() does."""
        return read_rows(self.uri, self.columns, rank, world, pinned=self.pinned)

    def identity(self, rank: int, world: int) -> bytes:
        """As PiecedRows: files count by name, rows and bytes."""
        files = [(file.name, file.rows, file.size) for file in self._files.files]
        return f"{rank} of {world} of {files}".encode()

    def pieces(self, rank: int, world: int) -> list[Piece]:
        """As PiecedRows: row groups. Opens the files; raises as read_rows() does."""
        return list(pieces_of(self._files, rank, world))

    def read_piece(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """As PiecedRows; raises as read_rows() does."""
        self._files.check(piece.file)
        columns = select(self.columns, self._files.schema.names, self.uri)
        return read_piece(self._files, piece, columns, BATCH_ROWS)

    @property
    def _files(self) -> PinnedFiles:
        pinned = self.pin().pinned
        assert pinned is not None
        return pinned


# A part of a database: its first key, the key that it ends before, and how many records it has.
# None where that is not known, or it goes on to the end.
Range = tuple[bytes, bytes | None, int | None]


@dataclass(frozen=True)
class PinnedDatabase:
    """A database as the driver saw it: LMDB or LevelDB, how many bytes it has, and its parts."""

    kind: str
    size: int
    parts: tuple[Range, ...]

    @property
    def records(self) -> int | None:
        """How many it has; None where nobody counted them."""
        counts = [count for _, _, count in self.parts]
        return None if None in counts else sum(counts)


@dataclass(frozen=True)
class DatabaseRows(RankFiles):
    """The Datum records of a local LMDB or LevelDB in key order, in `parts` ranges of keys.

    It is read where it lies, by every task the records of its part alone.
    """

    uri: str
    parts: int
    pinned: PinnedDatabase | None = None

    @property
    def kind(self) -> str:
        """LMDB or LevelDB, by what the driver found there."""
        if self.pinned is not None:
            return self.pinned.kind
        path = local_path(self.uri) or self.uri
        return "LevelDB" if os.path.isfile(os.path.join(path, "CURRENT")) else "LMDB"

    def pin(self) -> DatabaseRows:
        """The same with the parts that it has now.

        Raises:
            FileNotFoundError: nothing is there.
            ValueError: no database, or a damaged one.
        """
        from hearth import HearthError

        if self.pinned is not None:
            return self
        try:
            parts = self._lmdb_parts() if self.kind == "LMDB" else self._leveldb_parts()
        except HearthError as error:
            raise ValueError(str(error)) from None
        return replace(self, pinned=PinnedDatabase(self.kind, self._size(), parts))

    def read(self, part: int, parts: int) -> Iterator[pa.RecordBatch]:
        """The rows of one part, with the columns of DATUM_SCHEMA; `data` are views of the file.

        Raises:
            ValueError: the database is not as it was pinned.
            HearthError: it is damaged.
        """
        import pyarrow as pa

        pinned = self.pin().pinned
        if parts != len(pinned.parts):
            raise ValueError(f"{self.uri} was divided into {len(pinned.parts)}, not {parts}")
        self._check(pinned)
        rows = self._rows(pinned.parts[part])
        while (batch := rows.next()) is not None:
            yield pa.record_batch(batch)

    def frame(self, spark: SparkSession) -> DataFrame:
        """All rows as a DataFrame with a partition per part; raises as pin() does."""
        return frame_of_parts(self.pin(), self.parts, spark)

    def _lmdb_parts(self) -> tuple[Range, ...]:
        from hearth.native._core import divide_lmdb

        file = self._file()
        if not os.path.isfile(file):
            raise FileNotFoundError(f"{self.uri} is no LMDB on this host: there is no {file}")
        records, keys = divide_lmdb(file, self.parts)
        parts = []
        for part, key in enumerate(keys):
            begin, end = row_range(records, part, self.parts)
            parts.append((key, None, end - begin))
        return tuple(parts)

    def _leveldb_parts(self) -> tuple[Range, ...]:
        # Its library comes with the engine, and not into every worker of Spark's.
        from hearth.native._caffe import divide_leveldb

        return tuple(divide_leveldb(self._file(), self.parts))

    def _rows(self, part: Range) -> Any:
        if self.kind == "LevelDB":
            from hearth.native._caffe import leveldb_rows

            return leveldb_rows(self._file(), part)
        from hearth.native._core import DatumRows

        return DatumRows(self._file(), part[0], part[2])

    def _check(self, pinned: PinnedDatabase) -> None:
        try:
            size = self._size()
        except OSError as error:
            said = f"cannot be found ({error.strerror})"
        else:
            if size == pinned.size:
                return
            said = f"has {size} bytes instead of {pinned.size}"
        raise ValueError(
            f"{self._file()} {said} on host {socket.gethostname()}: a run reads the {self.kind} "
            "that its driver found when it began; put it back, make it visible to all hosts under "
            "this path, or start the run again"
        )

    def _size(self) -> int:
        """Bytes of the file, or of a LevelDB's files but for its logs of what it did."""
        file = self._file()
        if not os.path.isdir(file):
            return os.path.getsize(file)
        with os.scandir(file) as entries:
            counted = (e for e in entries if e.is_file() and not e.name.startswith(("LOG", "LOCK")))
            return sum(entry.stat().st_size for entry in counted)

    def _file(self) -> str:
        """An LMDB's data file, a LevelDB's folder."""
        path = local_path(self.uri) or self.uri
        plain = os.path.isdir(path) and self.kind == "LMDB"
        return os.path.join(path, "data.mdb") if plain else path


def frame_of_parts(rows: Any, parts: int, spark: SparkSession) -> DataFrame:
    """The records that `rows` reads of each part, as a DataFrame with a partition per part."""
    numbers = spark.range(0, parts, 1, parts)
    return numbers.mapInArrow(partial(read_parts, rows, parts), DATUM_SCHEMA)


def read_parts(
    rows: Any, parts: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows that `rows` reads of the parts whose numbers are in the batches' `id`; `data`, views
    of a file, become binaries."""
    for batch in batches:
        for part in batch.column("id").to_pylist():
            for datums in rows.read(part, parts):
                place = datums.schema.get_field_index("data")
                data = datums.column(place).cast("binary")  # Spark knows no views
                yield datums.set_column(place, "data", data)
