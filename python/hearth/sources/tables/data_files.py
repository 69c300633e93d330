"""Data files of a table version, as described by the table's log and by the file system."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from hearth.errors import NotFoundError, invalid
from hearth.files.stored_files import StoredFile, stored_in
from hearth.files.uri import is_remote

# Number of threads that list folders and check files.
_THREADS = 16
_LOCAL = re.compile(r"^file:(//[^/]*)?(?=/)")


@dataclass(frozen=True)
class DataFile(StoredFile):
    """A Parquet file of a table.

    `rows`: the row count, including deleted rows; None if not in the log. `values`: by name, the
    values of columns that have the same value in all rows. `deleted`: the result of pack_rows().
    """

    rows: int | None = None
    values: tuple[tuple[str, Any], ...] = ()
    deleted: bytes = b""

    def identity(self) -> tuple[Any, ...]:
        """Identifies the file, with its columns' values and deleted rows."""
        return *super().identity(), self.values, self.deleted

    def deleted_rows(self) -> np.ndarray:
        """The indices of deleted rows, in ascending order."""
        return np.cumsum(np.frombuffer(self.deleted, "<u4"), dtype=np.int64)


def whole_path(location: str) -> str:
    """Converts a location in a log; a local one becomes a plain path, without percent decoding."""
    return _LOCAL.sub("", location)


def pack_rows(rows: np.ndarray) -> bytes:
    """Encodes ascending indices as differences, which compress well."""
    return np.diff(rows, prepend=0).astype("<u4").tobytes()


def located(files: Sequence[DataFile], lister: Any, table: str) -> list[DataFile]:
    """Adds modification times and blocks to the files; sorts them by URI.

    Args:
        files: the files, with absolute URIs and the log's sizes.
        lister: the client from served().
        table: names the version and the table, for messages.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file has another size.
        OSError, HearthError: the file system cannot be reached.
    """
    with ThreadPoolExecutor(_THREADS, "hearth-locate") as pool:
        folders = sorted({file.uri.rpartition("/")[0] for file in files})
        listed = pool.map(lambda folder: _names(folder, lister), folders)
        by_folder = dict(zip(folders, listed, strict=True))
    known, parts = [], [part.name for part in fields(StoredFile)]
    for file in files:
        folder, _, name = file.uri.rpartition("/")
        status = by_folder[folder].get(name) or _names(file.uri, lister).get(name)
        if status is None:
            raise NotFoundError(
                f"{table} needs the file {file.uri}, which is missing: vacuuming the table, or "
                "expiring its snapshots, removes files of older versions; name a newer version"
            )
        if status.size != file.size:
            raise invalid(
                f"{table} has a damaged file: {file.uri} has {status.size} bytes instead of "
                f"{file.size}; restore it, or name another version"
            )
        seen = {name: getattr(status, name) for name in parts}
        known.append(replace(file, **seen | {"below": ""}))
    return sorted(known, key=lambda file: file.uri)


def _names(folder: str, lister: Any) -> dict[str, StoredFile]:
    """Lists the files of a folder, or the one file, by name."""
    found = stored_in(folder, lister if is_remote(folder) else None)
    return {file.uri.rpartition("/")[2]: file for file in found}
