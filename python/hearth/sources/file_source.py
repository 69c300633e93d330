"""FileSource: lists and pins files of any format, and reads their splits."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import socket
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, partial
from typing import Any

import pyarrow as pa

from hearth.errors import NotFoundError, invalid
from hearth.files.input_files import Count, InputFile, check_unchanged
from hearth.files.stored_files import StoredFile, list_files
from hearth.files.uri import local_path
from hearth.sources.cut_splits import LEAST_SPLITS, cut_splits
from hearth.sources.cut_units import OpenUnits
from hearth.sources.folder_columns import FolderColumns
from hearth.sources.format import Format, Unit, errors_of
from hearth.sources.pinned_types import in_type
from hearth.sources.source import Piece, Split
from hearth.spark.token_forwarder import forward_tokens

# Number of threads that read files' metadata, which takes a few round trips per remote file.
_METADATA_THREADS = 16


@dataclass(frozen=True)
class PinnedFiles:
    """Files as listed on the driver's `host`. `schema`: the selected columns by their names in the
    files, without columns from folder names.
    """

    host: str
    files: tuple[StoredFile, ...]
    schema: pa.Schema
    folders: FolderColumns
    splits: tuple[Split, ...]


@dataclass(frozen=True)
class FileSource:
    """A Source of files of one format. `columns`: (name in the files, name in the batches); empty:
    all. `spool`: whether ranks spool the rows to their disks for later epochs. `version`: the table
    version to which the files belong (Delta version 3), or empty.
    """

    format: Format
    uri: str
    columns: tuple[tuple[str, str], ...] = ()
    spool: bool = True
    version: str = ""
    packed: bytes = b""  # compressed PinnedFiles, about a tenth in size

    def pin(self, spark: Any = None) -> FileSource:
        """Fixes the current files and split boundaries; does nothing if already pinned. Raises like
        Source.pin().
        """
        return self if self.packed else self.pin_files(self._listed(spark))

    def pin_to(self, files: Sequence[Sequence[Any]], spark: Any = None) -> FileSource:
        """Like pin(), but only with `files`, the named_files() of an earlier pinned source.

        Raises:
            ValueError: a file is missing or has changed; or like pin().
        """
        listed = {file.identity(): file for file in self._listed(spark)}
        named = [tuple(file) for file in files]
        if lost := next((name for name in named if name not in listed), None):
            raise invalid(
                f"{lost[0]} has changed since the run began: it had {lost[1]} bytes; restore the "
                "files, or use another checkpoint_dir"
            )
        return self.pin_files([listed[name] for name in named])

    def named_files(self) -> list[tuple[Any, ...]]:
        """An identifier of each pinned file."""
        return [file.identity() for file in self.pinned.files]

    def _listed(self, spark: Any) -> list[StoredFile]:
        forward_tokens(spark)  # for reading the listed files' metadata
        return list_files(self.uri, spark, recursive=self.format.in_folders)

    def pin_files(self, listed: Sequence[StoredFile]) -> FileSource:
        """Like pin(), for files that were already listed."""
        files = self.format.data_files(listed)
        if not files:
            raise NotFoundError(f"there are no {self.format.kind} files in {self.uri}")
        with errors_of(files[0].uri, self.format.kind):
            known = self.format.schema(files)
        return self.pin_known(files, known)

    def pin_known(self, files: Sequence[StoredFile], known: pa.Schema) -> FileSource:
        """Like pin(), for data files (possibly none) whose columns are known."""
        folders = FolderColumns.of(files)
        schema = self._selected(known, folders)
        share = max(1, sum(file.size for file in files) // LEAST_SPLITS)
        # Each task covers several files: most files of a table are not opened, and skipping a file
        # takes less time than starting a task.
        some = max(1, len(files) // (_METADATA_THREADS * 16))
        parts = [files[i : i + some] for i in range(0, len(files), some)]
        with ThreadPoolExecutor(_METADATA_THREADS, "hearth-pin") as pool:
            looked = pool.map(lambda part: [self._units(file, share) for file in part], parts)
            units = list(itertools.chain.from_iterable(looked))
        splits = cut_splits(files, units)
        return self._with(PinnedFiles(socket.gethostname(), tuple(files), schema, folders, splits))

    def select(self, columns: Sequence[tuple[str, str]]) -> FileSource:
        """The pinned source with only these columns. Raises ValueError if one is missing."""
        chosen = replace(self, columns=tuple(columns))
        schema = chosen._selected(self.pinned.schema, self.pinned.folders)
        return chosen._with(replace(self.pinned, schema=schema))

    def only(self, splits: Sequence[Split]) -> FileSource:
        """The pinned source, limited to these splits."""
        used = sorted({piece.file for split in splits for piece in split.pieces})
        at = {number: i for i, number in enumerate(used)}
        files = tuple(self.pinned.files[number] for number in used)
        renumbered = []
        for i, split in enumerate(splits):
            pieces = tuple(replace(piece, file=at[piece.file]) for piece in split.pieces)
            renumbered.append(replace(split, number=i, pieces=pieces))
        return self._with(replace(self.pinned, files=files, splits=tuple(renumbered)))

    def in_place(self) -> FileSource:
        """The pinned source, changed to return binaries as views of mapped files if format and
        location permit."""
        if self.remote or not self.format.views:
            return self
        views = {pa.binary(): pa.binary_view()}
        types = [pa.field(f.name, views.get(f.type, f.type)) for f in self.pinned.schema]
        return self._with(replace(self.pinned, schema=pa.schema(types)))

    @property
    def remote(self) -> bool:
        """Whether the files are in a remote file system."""
        return any(local_path(file.uri) is None for file in self.pinned.files[:1])

    @property
    def extent(self) -> str:
        """The size, for the log: "2 files with 123 bytes"."""
        of = f"{self.version}, " if self.version else ""
        return f"{of}{len(self.pinned.files)} files with {self.size} bytes"

    @property
    def size(self) -> int:
        """Bytes of the pinned files."""
        return sum(file.size for file in self.pinned.files)

    def schema(self) -> pa.Schema:
        """The columns of every batch that read() returns."""
        return self._schema

    def splits(self) -> list[Split]:
        """The splits, which contain each row once. They do not depend on the number of ranks."""
        return list(self.pinned.splits)

    def read(self, split: Split, count: Count | None = None) -> Iterator[pa.RecordBatch]:
        """Reads the split's rows, in the same batches each time. Raises like Source.read()."""
        for number, pieces in itertools.groupby(split.pieces, key=lambda piece: piece.file):
            file = self.pinned.files[number]
            for part in self.pinned.files if self.format.one_database else (file,):
                self._check_unchanged(part)
            with errors_of(file.uri, self.format.kind):
                yield from self._read(InputFile(file, count), list(pieces))

    def identity(self) -> str:
        """A hash of the pinned files, columns and boundaries."""
        pinned = self.pinned
        files = self.named_files()
        rows = [(split.rows, split.pieces) for split in pinned.splits]
        text = repr((self.format.kind, self._schema.to_string(), self.columns, files, rows))
        digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        if not self.version:
            return digest
        return f"{self.version}, {sum(split.rows or 0 for split in pinned.splits)} rows, {digest}"

    @cached_property
    def pinned(self) -> PinnedFiles:
        """The result of pin(). Raises ValueError before pin()."""
        if not self.packed:
            raise invalid(f"{self.uri} is not pinned yet: call pin() first, in the driver")
        return pickle.loads(zlib.decompress(self.packed))

    def _with(self, pinned: PinnedFiles) -> FileSource:
        return replace(self, packed=zlib.compress(pickle.dumps(pinned)))

    def __getstate__(self) -> dict[str, Any]:  # omits cached properties
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @cached_property
    def _open_units(self) -> OpenUnits:
        return OpenUnits()

    @cached_property
    def _schema(self) -> pa.Schema:
        types = {field.name: field.type for field in self.pinned.schema}
        types |= dict(self.pinned.folders.types())
        names = self.columns or [(name, name) for name in types]
        return pa.schema([pa.field(alias, types[name]) for name, alias in names])

    def _selected(self, known: pa.Schema, folders: FolderColumns) -> pa.Schema:
        """The selected columns of the files. Raises ValueError if one is missing."""
        if twice := sorted({name for name in known.names if known.names.count(name) > 1}):
            raise invalid(f"{self.uri} has several columns called '{twice[0]}'; rename them")
        in_names = dict(folders.types())
        every = dict.fromkeys((*known.names, *in_names))
        for name, _ in self.columns:
            if name not in every:
                had = ", ".join(every)
                raise invalid(f"column '{name}' is not in {self.uri}, which has: {had}")
        wanted = {name for name, _ in self.columns} or every
        kept = [f for f in known if f.name in wanted and f.name not in in_names]
        return pa.schema([pa.field(field.name, _decoded(field.type)) for field in kept])

    def _units(self, file: StoredFile, share: int) -> list[Unit]:
        with errors_of(file.uri, self.format.kind):
            return self.format.units(file, share)

    def _check_unchanged(self, file: StoredFile) -> None:
        try:
            check_unchanged(file, self.pinned.host)
        except ValueError as error:
            if not self.version:
                raise
            raise invalid(
                f"{self.version} of {self.uri}: {error}; do not vacuum a table, nor expire its "
                "snapshots, while a run reads an older version"
            ) from error

    def _read(self, file: InputFile, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        schema = self.pinned.schema
        pieces = list(self._joined(pieces))
        keys = [piece.key for piece in pieces]
        opened = cache(lambda: self.format.open(file, schema, keys))  # not called for open units
        for piece in pieces:
            rows = (piece.begin, piece.end, piece.rows)
            start = partial(lambda key: opened()(key), piece.key)
            for batch in self._open_units.read((file.stored, piece.key), rows, start):
                arrays = dict(zip(schema.names, _as_pinned(batch, schema), strict=True))
                arrays |= self.pinned.folders.arrays(file.stored.below, batch.num_rows)
                names = self.columns or [(name, name) for name in arrays]
                columns = [arrays[name] for name, _ in names]
                yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _joined(self, pieces: Sequence[Piece]) -> Iterator[Piece]:
        """Combines whole units that the format can read at once; does not change other ranges."""
        last: Piece | None = None
        for piece in pieces:
            key = None
            if last is not None and _is_whole(last) and _is_whole(piece):
                key = self.format.joined(last.key, piece.key)
            if last is not None and key is not None:
                unknown = last.rows is None or piece.rows is None
                rows = None if unknown else (last.rows or 0) + (piece.rows or 0)
                last = Piece(piece.file, key, rows)
                continue
            if last is not None:
                yield last
            last = piece
        if last is not None:
            yield last


def _is_whole(piece: Piece) -> bool:
    return piece.begin == 0 and piece.end in (None, piece.rows)


def _decoded(kind: pa.DataType) -> pa.DataType:
    """Replaces dictionary types by their value types, also in lists."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_decoded(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_decoded(kind.value_type)))
    return kind


def _as_pinned(batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.Array]:
    """The batch's columns in the schema's order, converted to the pinned types."""
    return [in_type(batch.column(field.name), field) for field in schema]
