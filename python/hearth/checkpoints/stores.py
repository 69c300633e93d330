"""The file systems that checkpoints lie on: those of the core (this host's files, HDFS), and those
of pyarrow and fsspec."""

from __future__ import annotations

import io
import os
from typing import Any, Protocol

from hearth.files.core_input import CoreInput
from hearth.files.hadoop_shell import use_core_as_hadoop_user
from hearth.files.library_errors import library_refusal
from hearth.files.library_files import library_system, listed
from hearth.files.uri import CORE_SCHEMES, local_path, scheme
from hearth.native.failure import Failure, hearth_error


class Output(Protocol):
    """A file that is being written. One thread uses it."""

    def append(self, data: bytes) -> None: ...

    def commit(self) -> None:
        """Gives the file its name."""

    def discard(self) -> None:
        """Drops it, unless it has its name."""


class Store(Protocol):
    """What a folder of checkpoints asks of a file system. Any thread; methods raise what the file
    system does: OSError, ValueError, HearthError, or a class of its library.

    Attributes:
        renames_folders: whether rename() moves a folder with all its files in one step.
    """

    renames_folders: bool

    def names(self, folder: str) -> list[str]:
        """What a folder holds; nothing where there is no such folder."""

    def size(self, uri: str) -> int | None:
        """Bytes of a file; None where there is none."""

    def open_input(self, uri: str) -> Any:
        """A file to read(size) from, to seek() in, and to close()."""

    def open_output(self, uri: str) -> Output: ...

    def make_folder(self, uri: str) -> None:
        """Makes it and those above it."""

    def rename(self, uri: str, other: str) -> None: ...

    def remove(self, folder: str) -> None:
        """Removes a folder and what is in it."""


class CoreStore:
    """This host's files and HDFS."""

    renames_folders = True

    def __init__(self) -> None:
        use_core_as_hadoop_user()

    def names(self, folder: str) -> list[str]:
        from hearth.native._core import list_folder

        try:
            return [status.uri.rpartition("/")[2] for status in list_folder(folder)]
        except FileNotFoundError:
            return []

    def size(self, uri: str) -> int | None:
        from hearth.native._core import stat_file

        status = stat_file(uri)
        return None if status is None or status.is_folder else int(status.size)

    def open_input(self, uri: str) -> Any:
        from hearth.native._core import InputFile

        path = local_path(uri)
        return open(path, "rb") if path else io.BufferedReader(CoreReader(InputFile(uri)), 1 << 20)

    def open_output(self, uri: str) -> Output:
        from hearth.native._core import OutputFile

        return OutputFile(uri)

    def make_folder(self, uri: str) -> None:
        from hearth.native._core import make_folders

        make_folders(uri)

    def rename(self, uri: str, other: str) -> None:
        from hearth.native._core import rename_file

        rename_file(uri, other)
        if (path := local_path(other)) is not None:
            _sync_folder(os.path.dirname(path))

    def remove(self, folder: str) -> None:
        from hearth.native._core import delete_file

        delete_file(folder, recursive=True)


class CoreReader(CoreInput):
    """As CoreInput, for a BufferedReader."""

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class LibraryStore:
    """What pyarrow or fsspec know. Their renames of folders may copy file by file."""

    renames_folders = False

    def names(self, folder: str) -> list[str]:
        return sorted(info.base_name for info in listed(*library_system(folder)))

    def size(self, uri: str) -> int | None:
        system, path = library_system(uri)
        info = system.get_file_info(path)
        return int(info.size) if info.type.name == "File" else None

    def open_input(self, uri: str) -> Any:
        system, path = library_system(uri)
        return system.open_input_file(path)

    def open_output(self, uri: str) -> Output:
        system, path = library_system(uri)
        return LibraryOutput(system.open_output_stream(path))

    def make_folder(self, uri: str) -> None:
        system, path = library_system(uri)
        system.create_dir(path, recursive=True)

    def rename(self, uri: str, other: str) -> None:
        raise NotImplementedError("folders are not renamed here")

    def remove(self, folder: str) -> None:
        system, path = library_system(folder)
        system.delete_dir(path)


class LibraryOutput:
    """A stream of a library, whose file may be seen before it is complete."""

    def __init__(self, stream: Any):
        self._stream = stream

    def append(self, data: bytes) -> None:
        self._stream.write(data)

    def commit(self) -> None:
        self._stream.close()

    def discard(self) -> None:
        """The folder that it is in is removed as a whole."""


def store_of(uri: str) -> Store:
    """The file system of a URI or local path."""
    return CoreStore() if scheme(uri) in ("", "file", *CORE_SCHEMES) else LibraryStore()


def refusal(what: str, uri: str, error: Exception) -> Exception:
    """A HearthError of one line, to raise: what was to be done with `uri`, and why it failed."""
    if isinstance(error, hearth_error()):
        return Failure(f"{what} {uri}: {error}", getattr(error, "code", "internal")).error()
    return library_refusal(what, uri, error)


def _sync_folder(path: str) -> None:
    """Has the names in a local folder survive a loss of power."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
