"""The one interface of files by URI, and who serves a URI in this process, be it the driver's or an
executor's: the core (this host's files, HDFS), or a library (pyarrow's and fsspec's schemes).

Hadoop's own FileSystem, for its other schemes, is there by Spark's JVM on the driver
(hadoop_files.py) and by Hadoop's shell on executors (hadoop_shell.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from hearth.errors import HearthError
from hearth.files.core_files import CoreFiles
from hearth.files.library_errors import library_refusal
from hearth.files.library_files import LibraryFiles
from hearth.files.uri import CORE_SCHEMES, scheme
from hearth.native.failure import Failure


class Output(Protocol):
    """A file that is being written. One thread uses it."""

    def append(self, data: bytes) -> None: ...

    def commit(self) -> None:
        """Gives the file its name."""

    def discard(self) -> None:
        """Drops it, unless it has its name."""


class FileSystem(Protocol):
    """Any thread; methods raise what the file system does: OSError, ValueError, HearthError, or a
    class of its library.

    Attributes:
        renames_folders: whether rename() moves a folder with all its files in one step.
    """

    renames_folders: bool

    def exists(self, uri: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """What a folder holds; nothing where there is no such folder."""

    def located(self, uri: str) -> Iterator[tuple[str, int, bool, int, list[Any]]]:
        """As HadoopFiles.located()."""

    def status(self, uri: str) -> tuple[int, int] | None:
        """(bytes, milliseconds since 1970 when it was modified) of a file; None where there is
        none."""

    def open_input(self, uri: str) -> Any:
        """A file to read(size) from, to seek() in, and to close()."""

    def open_output(self, uri: str) -> Output: ...

    def make_folder(self, uri: str) -> None:
        """Makes it and those above it."""

    def rename(self, uri: str, other: str) -> None: ...

    def remove(self, folder: str) -> None:
        """Removes a folder and what is in it."""

    def fetch(self, uri: str, path: str) -> None:
        """Copies a file to the local `path`."""

    def store(self, paths: Sequence[str], folder: str) -> None:
        """Copies local files, in their order, into the folder. Each appears under its name when it
        is complete, in place of an older one."""


def files_of(uri: str) -> FileSystem:
    """What serves a URI or local path."""
    return CoreFiles() if by_core(uri) else LibraryFiles()


def by_core(uri: str) -> bool:
    """Whether the core's storage reads it, rather than a library."""
    return scheme(uri) in ("", "file", *CORE_SCHEMES)


def file_refusal(what: str, uri: str, error: Exception) -> Exception:
    """A HearthError of one line, to raise: what was to be done with `uri`, and why it failed."""
    if isinstance(error, HearthError):
        return Failure(f"{what} {uri}: {error}", error.code).error()
    return library_refusal(what, uri, error)
