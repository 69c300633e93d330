"""The interface of files by URI, the same on the driver and on executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol


class Output(Protocol):
    """A file being written. Not thread-safe."""

    def append(self, data: bytes) -> None:
        """Adds bytes to the end of the file."""

    def commit(self) -> None:
        """Publishes the file under its name."""

    def discard(self) -> None:
        """Discards the file if it was not committed."""


class FileSystem(Protocol):
    """Files of one client. Thread-safe. Methods raise the file system's errors: OSError,
    ValueError, HearthError, or an exception class of the library.

    Attributes:
        renames_folders: whether rename() moves a folder with all its files in one step.
    """

    renames_folders: bool

    def exists(self, uri: str) -> bool:
        """Whether a file or folder exists at the URI."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder; empty if the folder does not exist."""

    def located(self, uri: str) -> Iterator[tuple[str, int, bool, int, list[Any]]]:
        """Lists a folder's entries, or the one file; fields as in HadoopFiles.located()."""

    def status(self, uri: str) -> tuple[int, int] | None:
        """A file's (bytes, modification time in ms since 1970); None if it is missing."""

    def open_input(self, uri: str) -> Any:
        """Opens a file for read(size), seek() and close()."""

    def open_output(self, uri: str) -> Output:
        """Opens a new file, which appears under its name when it is committed."""

    def make_folder(self, uri: str) -> None:
        """Creates the folder and its parents."""

    def rename(self, uri: str, other: str) -> None:
        """Renames a file or folder; replaces an existing file."""

    def remove(self, folder: str) -> None:
        """Removes a folder and its contents."""

    def fetch(self, uri: str, path: str) -> None:
        """Copies a file to the local `path`."""

    def store(self, paths: Sequence[str], folder: str) -> None:
        """Copies local files, in order, into the folder. Each appears under its name when it is
        complete, replacing an existing file.
        """
