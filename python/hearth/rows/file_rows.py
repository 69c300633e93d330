"""Rows that ranks read by themselves, from files that the driver pins: Parquet or an LMDB."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

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

# What a part of an LMDB has, as Spark declares it.
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


@dataclass(frozen=True)
class PinnedLmdb:
    """An LMDB as the driver saw it: how large it is, and with which key each part of it begins."""

    size: int
    records: int
    first_keys: tuple[bytes, ...]


@dataclass(frozen=True)
class LmdbRows(RankFiles):
    """The Datum records of a local LMDB in key order, in `parts` ranges of keys.

    It is read where it lies, by every task the pages of its part alone.
    """

    uri: str
    parts: int
    pinned: PinnedLmdb | None = None

    def pin(self) -> LmdbRows:
        """The same with the parts that it has now.

        Raises:
            FileNotFoundError: nothing is there.
            ValueError: no LMDB, or a damaged one.
        """
        from hearth import HearthError
        from hearth.native._core import divide_lmdb

        if self.pinned is not None:
            return self
        file = self._file()
        if not os.path.isfile(file):
            raise FileNotFoundError(f"{self.uri} is no LMDB on this host: there is no {file}")
        try:
            records, keys = divide_lmdb(file, self.parts)
        except HearthError as error:
            raise ValueError(str(error)) from None
        return replace(self, pinned=PinnedLmdb(os.path.getsize(file), records, keys))

    def read(self, part: int, parts: int) -> Iterator[pa.RecordBatch]:
        """The rows of one part, with the columns of DATUM_SCHEMA.

        Raises:
            ValueError: the LMDB is not as it was pinned.
            HearthError: it is damaged.
        """
        import pyarrow as pa

        from hearth.native._core import DatumRows

        pinned = self.pin().pinned
        if parts != len(pinned.first_keys):
            raise ValueError(f"{self.uri} was divided into {len(pinned.first_keys)}, not {parts}")
        self._check(pinned)
        begin, end = row_range(pinned.records, part, parts)
        rows = DatumRows(self._file(), pinned.first_keys[part], end - begin)
        while (batch := rows.next()) is not None:
            yield pa.record_batch(batch)

    def frame(self, spark: SparkSession) -> DataFrame:
        """All rows as a DataFrame with a partition per part; raises as pin() does."""
        parts = spark.range(0, self.parts, 1, self.parts)
        return parts.mapInArrow(partial(_read_parts, self.pin()), DATUM_SCHEMA)

    def _check(self, pinned: PinnedLmdb) -> None:
        file = self._file()
        try:
            size = os.path.getsize(file)
        except OSError as error:
            said = f"cannot be found ({error.strerror})"
        else:
            if size == pinned.size:
                return
            said = f"has {size} bytes instead of {pinned.size}"
        raise ValueError(
            f"{file} {said} on host {socket.gethostname()}: a run reads the LMDB that its driver "
            "found when it began; put it back, make it visible to all hosts under this path, or "
            "start the run again"
        )

    def _file(self) -> str:
        path = local_path(self.uri) or self.uri
        return os.path.join(path, "data.mdb") if os.path.isdir(path) else path


def _read_parts(rows: LmdbRows, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for part in batch.column("id").to_pylist():
            yield from rows.read(part, rows.parts)
