"""Opens files for reading at offsets: local ones, those of HDFS and those of libraries alike."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hearth.files.core_input import CoreInput
from hearth.files.file_system import by_core, files_of
from hearth.files.hadoop_shell import use_core_as_hadoop_user
from hearth.files.library_files import LibraryInput
from hearth.files.stored_files import StoredFile, known_time
from hearth.files.uri import local_path

if TYPE_CHECKING:
    import pyarrow as pa


# Called with the number of bytes of each read.
Count = Callable[[int], None]


class InputFile:
    """A file that is opened by the first read. Any thread may read. Raises OSError or HearthError,
    which name the file."""

    def __init__(self, file: StoredFile, count: Count | None = None):
        """check_unchanged() compares it with the driver's. `count` is not called for bytes that
        pyarrow or the core read of a local file."""
        self.stored, self.uri = file, file.uri
        self.path = local_path(file.uri)  # None: of another file system
        self.count: Count = count or (lambda size: None)

    @cached_property
    def _file(self) -> Any:
        return open_uri(self.uri)

    def size(self) -> int:
        size: int = self._file.size()
        return size

    def read_at(self, at: int, size: int) -> bytes:
        """The bytes from `at` on; fewer where the file ends."""
        data: bytes = self._file.read_at(at, size)
        self.count(len(data))
        return data

    def for_arrow(self) -> pa.NativeFile:
        """The file as pyarrow reads it; a local one by pyarrow itself."""
        import pyarrow as pa

        return pa.OSFile(self.path) if self.path is not None else arrow_file(self)


def arrow_file(file: Any) -> pa.NativeFile:
    """What has size() and read_at(), as pyarrow reads files."""
    import pyarrow as pa

    return pa.PythonFile(CoreInput(file), mode="r")


class _LocalInput:
    """A file of this host. Any thread."""

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
    """A file of this host, the core's or a library's, with size() and read_at() for any thread.

    Raises:
        OSError, HearthError: it cannot be opened.
        ValueError: nothing here knows the scheme.
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
    """Compares a file with what the driver saw.

    Args:
        file: as the driver saw it.
        pinned_on: the driver's host. A local file of another host may be a copy, whose modification
            time differs.

    Raises:
        ValueError: it is missing, or has another size or modification time.
        OSError, HearthError: its file system does not answer.
    """
    found = status_of(file.uri)
    if found is None:
        what = "is missing"
    elif found[0] != file.size:
        what = f"has {found[0]} bytes instead of {file.size}"
    elif file.modified_ms and found[1] != file.modified_ms and not _is_copy(file.uri, pinned_on):
        what = "was written again"
    else:
        return
    raise ValueError(
        f"{file.uri} {what} (seen from host {socket.gethostname()}): a run reads the files that "
        "its driver found when it began; put the file back, make it visible to all hosts under "
        "this path, or start the run again"
    )


def status_of(uri: str) -> tuple[int, int] | None:
    """(bytes, milliseconds since 1970 when it was modified, as StoredFile has it); None where it
    is missing."""
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
