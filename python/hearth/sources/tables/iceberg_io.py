"""Implements pyiceberg's file access with the driver's clients."""

from __future__ import annotations

import io
from typing import Any

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile

from hearth.errors import UnimplementedError
from hearth.files.stored_files import stored_in
from hearth.files.uri import is_remote
from hearth.sources.tables.data_files import whole_path
from hearth.sources.tables.table_source import read_whole


class DriverFileIO(FileIO):
    """Reads whole metadata files; cannot write. Thread-safe."""

    def __init__(self, lister: Any):
        """`lister`: the client from served(), for remote URIs."""
        super().__init__({})
        self._lister = lister

    def new_input(self, location: str) -> InputFile:
        return _Input(location, self._lister)

    def new_output(self, location: str) -> OutputFile:
        raise UnimplementedError(f"{location} is not written: tables are only read")

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise UnimplementedError(f"{location} is not deleted: tables are only read")


class _Input(InputFile):
    def __init__(self, location: str, lister: Any):
        super().__init__(location)
        self._uri = whole_path(location)
        self._lister = lister if is_remote(location) else None

    def __len__(self) -> int:
        return len(self._content())

    def exists(self) -> bool:
        return bool(stored_in(self._uri, self._lister))

    def open(self, seekable: bool = True) -> InputStream:
        return io.BytesIO(self._content())

    def _content(self) -> bytes:
        return read_whole(self._uri, self._lister)
