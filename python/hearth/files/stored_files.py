"""Files as the driver listed them: name, size, modification time, and the hosts of their blocks."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hearth.errors import NotFoundError, invalid
from hearth.files.core_files import CoreFiles
from hearth.files.hadoop_files import HadoopFiles
from hearth.files.library_files import LibraryFiles
from hearth.files.table_folders import refuse_table
from hearth.files.uri import (
    CORE_SCHEMES,
    is_local,
    is_remote,
    local_path,
    scheme,
    serving,
    whole_uri,
)

_HIDDEN = ("_", ".")


@dataclass(frozen=True)
class Block:
    """A range of a file's bytes, and the hosts (names or addresses) that store it."""

    begin: int
    end: int
    hosts: frozenset[str]


@dataclass(frozen=True)
class StoredFile:
    """A file as the driver listed it.

    `uri`: an absolute path if the file is local. `blocks`: empty if the file system does not report
    them. `modified_ms`: in milliseconds since 1970, rounded down to seconds for HDFS because some
    HDFS clients report only seconds; 0 if unknown. `below`: the subfolders between the listed
    folder and the file, each with a trailing slash.
    """

    uri: str
    size: int
    blocks: tuple[Block, ...] = ()
    modified_ms: int = 0
    below: str = ""

    @property
    def cover(self) -> tuple[Block, ...]:
        """Sorted blocks that cover each byte of the file exactly once; ranges without a reported
        block have no hosts.
        """
        cover: list[Block] = []
        at = 0
        for block in sorted(self.blocks, key=lambda block: block.begin):
            begin, end = max(at, block.begin), min(block.end, self.size)
            if begin >= end:
                continue
            if at < begin:
                cover.append(Block(at, begin, frozenset()))
            cover.append(Block(begin, end, block.hosts))
            at = end
        if at < self.size:
            cover.append(Block(at, self.size, frozenset()))
        return tuple(cover)

    def hosts_at(self, offset: int) -> frozenset[str]:
        """The hosts that store the byte at `offset`; empty if unknown."""
        return next((b.hosts for b in self.blocks if b.begin <= offset < b.end), frozenset())

    def identity(self) -> tuple[Any, ...]:
        """A value that changes with the file's rows, as far as size and modification time show
        it."""
        return self.uri, self.size, self.modified_ms


def list_files(uri: str, spark: Any = None, recursive: bool = False) -> list[StoredFile]:
    """Lists a folder's files, or the one file, sorted by URI, without hidden files (_x, .x).

    Uses Spark's JVM if possible, because it reports the blocks; otherwise the core or a library.

    Args:
        uri: a path, or a URI of any scheme that the core, Spark, pyarrow or fsspec supports. A path
            without a scheme is in Spark's default file system, or without `spark` on this host.
        spark: a session, or None.
        recursive: whether to include files in subfolders.

    Raises:
        FileNotFoundError: the URI does not exist.
        ValueError: the URI is a Delta, Iceberg or Hudi table, its scheme is unsupported, or it
            contains a folder named after a column (and `recursive` is false).
        OSError, HearthError: the URI cannot be listed.
    """
    where, files = served(uri, spark)
    refuse_table(where, files)
    found = sorted(_walk(where, files, recursive, ""), key=lambda file: file.uri)
    if not found:
        raise NotFoundError(f"there are no files in {where}")
    return found


def served(uri: str, spark: Any = None) -> tuple[str, Any]:
    """Returns the URI in the form that the driver reads (a path if it is local), and the client
    that lists it: a HadoopFiles or LibraryFiles, or None for the operating system or the core.

    Raises:
        ValueError, HearthError: no client here supports the scheme.
    """
    if spark is None or not scheme(uri):
        local = not is_remote(uri) if spark is None else is_local(uri, spark)
        uri = uri if local or spark is None else whole_uri(uri, spark)
    path = local_path(uri)
    files = None if path is not None or spark is None else serving(HadoopFiles.of(spark), uri)
    if files is None and path is None and scheme(uri) not in CORE_SCHEMES:
        files = LibraryFiles()
    return path or uri, files


def stored_in(where: str, files: Any) -> list[StoredFile]:
    """Lists a folder's files, including hidden ones, or the one file; empty if missing. `files`:
    the client from served(). Raises OSError or HearthError if it cannot be listed.
    """
    if files is not None and not files.exists(where):
        return []
    try:
        listed = list(_listed(where) if files is None else files.located(where))
    except FileNotFoundError:
        return []
    return [
        StoredFile(uri, size, tuple(Block(*block) for block in blocks), known_time(uri, modified))
        for uri, size, is_folder, modified, blocks in listed
        if not is_folder
    ]


def _walk(where: str, files: Any, recursive: bool, below: str) -> Iterator[StoredFile]:
    """Yields the files of a folder, or the one file. `files`: the client from served()."""
    listed = _listed(where) if files is None else files.located(where)
    for uri, size, is_folder, modified_ms, blocks in listed:
        name = uri.rstrip("/").rpartition("/")[2]
        if name.startswith(_HIDDEN):
            continue
        if not is_folder:
            blocks = tuple(Block(*block) for block in blocks)
            yield StoredFile(uri, size, blocks, known_time(uri, modified_ms), below)
        elif recursive:
            yield from _walk(uri, files, recursive, f"{below}{name}/")
        elif "=" in name:
            raise invalid(
                f"{where} has a folder {name}: only hearth.data.parquet() reads columns from the "
                "names of folders; name one of the folders, or read it with Spark"
            )


def _listed(where: str) -> Iterator[tuple[str, int, bool, int, list[Any]]]:
    """Like HadoopFiles.located(), through the operating system or the core."""
    if local_path(where) is None:
        yield from CoreFiles().located(where)
        return
    paths = [entry.path for entry in os.scandir(where)] if os.path.isdir(where) else [where]
    for path in paths:
        try:
            found = os.stat(path)
        except FileNotFoundError:
            raise NotFoundError(f"{path} does not exist on this host") from None
        yield path, found.st_size, stat.S_ISDIR(found.st_mode), found.st_mtime_ns // 1_000_000, []


def known_time(uri: str, modified_ms: int) -> int:
    """Rounds down to the precision that every client of the file system reports."""
    return modified_ms // 1000 * 1000 if scheme(uri) in CORE_SCHEMES else modified_ms
