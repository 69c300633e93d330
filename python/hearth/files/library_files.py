"""Accesses schemes that Spark's Hadoop does not support through pyarrow's or fsspec's file systems:
s3, gs, abfs and any scheme of an fsspec package. Needs no JVM on the driver or on executors.
"""

from __future__ import annotations

import re
import shutil
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hearth.errors import HearthError, UnimplementedError, invalid
from hearth.files import interface
from hearth.files.library_errors import library_refusal

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

_COPY_BYTES = 8 << 20
# Hadoop's names of the S3 scheme, which pyarrow does not know.
_S3 = ("s3a:", "s3n:")
_PATH = re.compile(r"(?<=://)([^/?]*)([^?]*)")  # a URI's authority and its path


def library_system(uri: str) -> tuple[FileSystem, str]:
    """A URI's file system (pyarrow's, or otherwise fsspec's), and the path in it.

    Raises:
        ValueError: neither supports the scheme; if a package is missing, the message names it.
    """
    from pyarrow import ArrowInvalid
    from pyarrow.fs import FileSystem, PyFileSystem

    try:
        known = f"s3:{uri[4:]}" if uri.startswith(_S3) else uri
        # A percent sign in a file name is literal, but pyarrow decodes escapes, so escape it.
        return FileSystem.from_uri(_PATH.sub(lambda m: m[1] + m[2].replace("%", "%25"), known, 1))
    except ArrowInvalid as error:
        try:
            import fsspec

            system, path = fsspec.core.url_to_fs(uri)
        except (ImportError, ValueError) as other:
            raise invalid(_unknown(error, other)) from None  # omits the cause: see _at()
        from hearth.files.fsspec_handler import FsspecHandler

        return PyFileSystem(FsspecHandler(system)), path


def _unknown(error: Exception, other: Exception) -> str:
    if isinstance(other, ImportError):  # fsspec's message names the package
        return f"{other} (here and on the executors), or add the jars of this scheme to Spark"
    return (
        f"Spark has no file system for this scheme, nor has pyarrow ({error}) or fsspec ({other}): "
        "check its spelling, and that its jars or its package are installed"
    )


def library_knows(uri: str) -> bool:
    """Whether a library here has a file system for the scheme of `uri`."""
    try:
        library_system(uri)
    except ValueError:
        return False
    except Exception:  # the scheme is supported; the first use reports it
        return True
    return True


class LibraryFiles(interface.FileSystem):
    """A FileSystem with HadoopFiles' methods. Stateless.

    Methods raise HearthError with a code; its one-line message has the path and the reason. Open
    files raise the library's errors.
    """

    renames_folders = False  # a rename may copy file by file

    def qualified(self, uri: str) -> str:
        """Returns the URI unchanged, because these schemes have no default host."""
        return uri

    def exists(self, uri: str) -> bool:
        with self._at(uri) as (system, path):
            return _type(system, path) != "NotFound"

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; empty if the folder does not exist."""
        with self._at(folder) as (system, path):
            return sorted(info.base_name for info in listed(system, path))

    def located(self, uri: str) -> Iterator[tuple[str, int, bool, int, list[Any]]]:
        with self._at(uri) as (system, path):
            info = system.get_file_info(path)
            if info.type.name == "File":
                found = [(uri, info)]
            else:
                base = uri.rstrip("/")
                found = [(f"{base}/{item.base_name}", item) for item in listed(system, path)]
            for name, item in found:
                is_folder = item.type.name == "Directory"
                yield name, item.size or 0, is_folder, (item.mtime_ns or 0) // 1_000_000, []

    def read(self, uri: str) -> bytes:
        """The content of a small file."""
        with self._at(uri) as (system, path), system.open_input_stream(path) as source:
            return source.read()

    def write(self, uri: str, data: bytes) -> None:
        """Writes a small file under a temporary name and renames it, replacing an existing file."""
        with self._at(uri) as (system, path), _new_file(system, path) as target:
            target.write(data)

    def delete(self, uri: str) -> None:
        """Removes a file if it exists."""
        with self._at(uri) as (system, path):
            if _type(system, path) == "File":
                system.delete_file(path)

    def check_readable(self, what: str, uri: str) -> None:
        """Raises HearthError, which starts with `what`, unless the file or folder exists."""
        with self._at(uri, what) as (system, path):
            if _type(system, path) == "NotFound":
                missing = FileNotFoundError("there is no such file or folder")
                raise library_refusal(what, uri, missing)

    def check_writable(self, what: str, uri: str) -> None:
        """Creates the folder of `uri` and tries to write there; raises like check_readable()."""
        with self._at(uri, what) as (system, path):
            folder = path.rpartition("/")[0]
            if folder:
                system.create_dir(folder, recursive=True)
            probe = f"{folder}/.hearth-{uuid.uuid4()}.probe"
            system.open_output_stream(probe).close()
            system.delete_file(probe)

    def fetch(self, uri: str, path: str) -> None:
        with (
            self._at(uri) as (system, source),
            system.open_input_stream(source) as remote,
            open(path, "wb") as local,
        ):
            shutil.copyfileobj(remote, local, _COPY_BYTES)

    def store(self, paths: Sequence[str], folder: str) -> None:
        """Copies local files into a folder, which is created if it does not exist."""
        with self._at(folder) as (system, folder_path):
            for path in paths:
                target = f"{folder_path}/{Path(path).name}"
                with open(path, "rb") as local, _new_file(system, target) as remote:
                    shutil.copyfileobj(local, remote, _COPY_BYTES)

    def status(self, uri: str) -> tuple[int, int] | None:
        with self._at(uri) as (system, path):
            info = system.get_file_info(path)
            if info.type.name != "File":
                return None
            return int(info.size or 0), (info.mtime_ns or 0) // 1_000_000

    def open_input(self, uri: str) -> Any:
        with self._at(uri) as (system, path):
            return system.open_input_file(path)

    def open_output(self, uri: str) -> LibraryOutput:
        """Opens a new file, which may be visible before it is complete."""
        with self._at(uri) as (system, path):
            return LibraryOutput(system.open_output_stream(path))

    def make_folder(self, uri: str) -> None:
        with self._at(uri) as (system, path):
            system.create_dir(path, recursive=True)

    def rename(self, uri: str, other: str) -> None:
        """Not supported: raises UnimplementedError."""
        raise UnimplementedError("renaming folders is not supported")

    def remove(self, folder: str) -> None:
        with self._at(folder) as (system, path):
            system.delete_dir(path)

    # Raises errors `from None`, because the cause's text may contain a URI's password.
    @contextmanager
    def _at(self, uri: str, what: str = "") -> Iterator[tuple[FileSystem, str]]:
        try:
            found = library_system(uri)
        except Exception as error:  # packages define their own exceptions
            raise library_refusal(what, uri, error) from None
        try:
            yield found
        except HearthError:
            raise
        except Exception as error:
            raise library_refusal(what, uri, error) from None


class LibraryOutput(interface.Output):
    """A library's output stream, whose file may be visible before it is complete."""

    def __init__(self, stream: Any):
        self._stream = stream

    def append(self, data: bytes) -> None:
        self._stream.write(data)

    def commit(self) -> None:
        self._stream.close()

    def discard(self) -> None:
        """Does nothing: the containing folder is removed as a whole."""


class LibraryInput:
    """A library's file for CoreInput to read. Thread-safe. Raises the library's errors."""

    def __init__(self, uri: str):
        self._lock = threading.Lock()
        system, path = library_system(uri)
        self._file = system.open_input_file(path)

    def size(self) -> int:
        """The size in bytes."""
        return self._file.size()

    def read_at(self, at: int, size: int) -> bytes:
        """Up to `size` bytes from an offset; fewer only at the end."""
        with self._lock:
            self._file.seek(at)
            return self._file.read(size)


def _type(system: FileSystem, path: str) -> str:
    return str(system.get_file_info(path).type.name)


def listed(system: FileSystem, folder: str) -> list[FileInfo]:
    """The entries of a folder; empty if the folder does not exist."""
    from pyarrow.fs import FileSelector

    found = system.get_file_info(FileSelector(folder, allow_not_found=True))
    # adlfs also lists the entries of subfolders, so keep only the highest level.
    depths = [info.path.rstrip("/").count("/") for info in found]
    least = min(depths, default=0)
    return [info for info, depth in zip(found, depths, strict=True) if depth == least]


@contextmanager
def _new_file(system: FileSystem, path: str) -> Iterator[Any]:
    """Creates the folder and opens a new file. The file appears under its name when it is complete;
    an incomplete file is removed.
    """
    # The temporary name is random, because fsspec's move() interprets names as patterns.
    folder = path.rpartition("/")[0]
    part = f"{folder}/.{uuid.uuid4().hex}.part"
    try:
        if folder:
            system.create_dir(folder, recursive=True)
        with system.open_output_stream(part) as target:
            yield target
        system.move(part, path)
    except BaseException:
        with suppress(Exception):  # raise the original error
            system.delete_file(part)
        raise
