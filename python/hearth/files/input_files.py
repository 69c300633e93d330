"""Random-access reads of files: local, in HDFS, or served by a library."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pyarrow as pa

from hearth.errors import invalid
from hearth.files.core_input import CoreInput
from hearth.files.file_system import by_core, files_of
from hearth.files.hadoop_shell import use_core_as_hadoop_user
from hearth.files.library_files import LibraryInput
from hearth.files.stored_files import StoredFile, known_time
from hearth.files.uri import local_path

# Called with the size of each read in bytes.
Count = Callable[[int], None]


class InputFile:
    """A file, opened at the first read. Thread-safe. Raises OSError or HearthError with the file's
    name.
    """

    def __init__(self, file: StoredFile, count: Count | None = None):
        """Does not check that the file is unchanged (see check_unchanged()). `count` is not called
        for bytes of a local file that pyarrow or the core reads itself.
        """
        self.stored, self.uri = file, file.uri
        self.path = local_path(file.uri)  # None if remote
        self.count: Count = count or (lambda size: None)

    @cached_property
    def _file(self) -> Any:
        return open_uri(self.uri)

    def size(self) -> int:
        """The size in bytes."""
        size: int = self._file.size()
        return size

    def read_at(self, at: int, size: int) -> bytes:
        """Up to `size` bytes from offset `at`; fewer at the end of the file."""
        data: bytes = self._file.read_at(at, size)
        self.count(len(data))
        return data

    def for_arrow(self) -> pa.NativeFile:
        """The file for pyarrow to read; pyarrow opens local files itself."""
        return pa.OSFile(self.path) if self.path is not None else arrow_file(self)


def arrow_file(file: Any) -> pa.NativeFile:
    """Wraps an object with size() and read_at() as a pyarrow file."""
    return pa.PythonFile(CoreInput(file), mode="r")


class _LocalInput:
    """A local file. Thread-safe."""

    def __init__(self, path: str):
        self._file = open(path, "rb")  # noqa: SIM115 (closed with this object)

    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def read_at(self, at: int, size: int) -> bytes:
        parts = []
        while size > 0 and (data := os.pread(self._file.fileno(), size, at)):
            parts.append(data)
            at, size = at + len(data), size - len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def open_uri(uri: str) -> Any:
    """Opens a local file, or one of the core or a library; the result's size() and read_at() are
    thread-safe.

    Raises:
        OSError, HearthError: the file cannot be opened.
        ValueError: no client here supports the scheme.
    """
    from hearth.native._core import InputFile as CoreFile

    path = local_path(uri)
    if path is not None:
        return _LocalInput(path)
    if not by_core(uri):
        return LibraryInput(uri)
    use_core_as_hadoop_user()
    return CoreFile(uri)


def check_unchanged(file: StoredFile, pinned_on: str = "") -> None:
    """Checks that a file has not changed since the driver listed it.

    Args:
        file: the file as the driver listed it.
        pinned_on: the driver's host. On another host, the modification time of a local file is not
            compared, because the file may be a copy.

    Raises:
        ValueError: the file is missing, or its size or modification time differs.
        OSError, HearthError: the file system failed.
    """
    found = status_of(file.uri)
    if found is None:
        what = "is missing"
    elif found[0] != file.size:
        what = f"has {found[0]} bytes instead of {file.size}"
    elif file.modified_ms and found[1] != file.modified_ms and not _is_copy(file.uri, pinned_on):
        what = "was modified"
    else:
        return
    raise invalid(
        f"{file.uri} {what} (seen from host {socket.gethostname()}): a run reads the files that "
        "its driver found when it started; restore the file, make it visible to all hosts under "
        "this path, or start the run again"
    )


def status_of(uri: str) -> tuple[int, int] | None:
    """A file's size and modification time, in StoredFile's units; None if the file is missing."""
    path = local_path(uri)
    if path is not None:
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        return found.st_size, found.st_mtime_ns // 1_000_000
    status = files_of(uri).status(uri)
    return status and (status[0], known_time(uri, status[1]))


def _is_copy(uri: str, pinned_on: str) -> bool:
    return local_path(uri) is not None and pinned_on not in ("", socket.gethostname())
