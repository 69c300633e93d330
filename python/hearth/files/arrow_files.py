"""The core's storage as a pyarrow file system, so pyarrow reads hdfs: without a JVM or libhdfs."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType, PyFileSystem

from hearth.errors import NotFoundError, UnimplementedError
from hearth.files.core_input import CoreInput
from hearth.files.uri import CORE_SCHEMES, scheme


def arrow_file_system(uri: str) -> PyFileSystem | None:
    """The file system for an hdfs: URI, whose paths are full URIs; None for other schemes."""
    return PyFileSystem(CoreHandler()) if scheme(uri) in CORE_SCHEMES else None


class CoreHandler(FileSystemHandler):
    """Implements pyarrow's FileSystemHandler with the core. Thread-safe.

    Methods raise the core's errors: OSError, ValueError, or HearthError for the rest.
    """

    def __init__(self) -> None:
        from hearth.native import _core

        self._core = _core

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CoreHandler)

    def get_type_name(self) -> str:
        return "hearth"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        return [self._info(path, self._core.stat_file(path)) for path in paths]

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        if selector.allow_not_found and self._core.stat_file(selector.base_dir) is None:
            return []
        found = []
        for status in self._core.list_folder(selector.base_dir):
            found.append(self._info(status.uri, status))
            if selector.recursive and status.is_folder:
                found += self.get_file_info_selector(FileSelector(status.uri, recursive=True))
        return found

    def _info(self, path: str, status: Any) -> FileInfo:
        if status is None:
            return FileInfo(path, FileType.NotFound)
        if status.is_folder:
            return FileInfo(path, FileType.Directory)
        nanoseconds = status.modified_ms * 1_000_000
        return FileInfo(path, FileType.File, size=status.size, mtime_ns=nanoseconds)

    def create_dir(self, path: str, recursive: bool) -> None:
        """Creates the folder and its parents, even if `recursive` is false."""
        self._core.make_folders(path)

    def delete_dir(self, path: str) -> None:
        self._core.delete_file(path, recursive=True)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        if missing_dir_ok and self._core.stat_file(path) is None:
            return
        for status in self._core.list_folder(path):
            self._core.delete_file(status.uri, recursive=True)

    def delete_root_dir_contents(self) -> None:
        raise UnimplementedError("the root of a file system cannot be emptied")

    def delete_file(self, path: str) -> None:
        if not self._core.delete_file(path):
            raise NotFoundError(f"{path} does not exist")

    def move(self, src: str, dest: str) -> None:
        self._core.rename_file(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        """Copies a file through this process's memory."""
        self._core.write_file(dest, self._core.read_file(src))

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(CoreInput(self._core.InputFile(path)), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        return pa.PythonFile(_Output(self._core.OutputFile(path)), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        raise UnimplementedError(f"{path} cannot be opened for appending")


class _Output(io.RawIOBase):
    """A new file, which appears under its name when it is closed."""

    def __init__(self, file: Any):
        super().__init__()
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        content = bytes(data)
        self._file.append(content)
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._file.commit()
        super().close()
