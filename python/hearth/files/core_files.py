"""Accesses local files and HDFS through the core's storage, in milliseconds and without a JVM."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hearth.errors import NotFoundError
from hearth.files.core_input import CoreInput
from hearth.files.hadoop_shell import use_core_as_hadoop_user
from hearth.files.interface import FileSystem
from hearth.files.uri import local_path

_COPY_BYTES = 8 << 20


class CoreFiles(FileSystem):
    """Accesses local files and HDFS. Stateless. Methods raise the core's errors: OSError,
    ValueError or HearthError."""

    renames_folders = True

    def __init__(self) -> None:
        from hearth.native import _core

        self._core = _core
        use_core_as_hadoop_user()

    def exists(self, uri: str) -> bool:
        return self._core.stat_file(uri) is not None

    def names(self, folder: str) -> list[str]:
        try:
            listed = self._core.list_folder(folder)
        except FileNotFoundError:
            return []
        return [status.uri.rstrip("/").rpartition("/")[2] for status in listed]

    def located(self, uri: str) -> Iterator[tuple[str, int, bool, int, list[Any]]]:
        status = self._core.stat_file(uri)
        if status is None:
            raise NotFoundError(f"{uri} does not exist")
        for file in self._core.list_folder(uri) if status.is_folder else [status]:
            yield file.uri, file.size, file.is_folder, file.modified_ms, []

    def status(self, uri: str) -> tuple[int, int] | None:
        found = self._core.stat_file(uri)
        return None if found is None or found.is_folder else (found.size, found.modified_ms)

    def open_input(self, uri: str) -> Any:
        path = local_path(uri)
        if path is not None:
            return open(path, "rb")
        return io.BufferedReader(CoreInput(self._core.InputFile(uri)), 1 << 20)

    def open_output(self, uri: str) -> Any:
        return self._core.OutputFile(uri)  # HDFS creates parent folders

    def make_folder(self, uri: str) -> None:
        self._core.make_folders(uri)

    def rename(self, uri: str, other: str) -> None:
        """Renames a file or folder; a local rename survives a power failure."""
        self._core.rename_file(uri, other)
        if (path := local_path(other)) is not None:
            _sync_folder(os.path.dirname(path))

    def remove(self, folder: str) -> None:
        self._core.delete_file(folder, recursive=True)

    def fetch(self, uri: str, path: str) -> None:
        source, at = self._core.InputFile(uri), 0
        with open(path, "wb") as target:
            while block := source.read_at(at, _COPY_BYTES):
                target.write(block)
                at += len(block)

    def store(self, paths: Sequence[str], folder: str) -> None:
        """Copies local files into a folder, which must exist."""
        for path in paths:
            target = self.open_output(f"{folder}/{Path(path).name}")
            try:
                with open(path, "rb") as source:
                    while block := source.read(_COPY_BYTES):
                        target.append(block)
                target.commit()
            finally:
                target.discard()


def _sync_folder(path: str) -> None:
    """Flushes a local folder's entries, so they survive a power failure."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
