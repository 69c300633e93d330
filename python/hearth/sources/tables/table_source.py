"""The base class of table sources."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from hearth.errors import invalid
from hearth.files.input_files import open_uri
from hearth.sources.file_source import FileSource
from hearth.sources.tables.data_files import DataFile
from hearth.sources.tables.format import TableFormat


@dataclass(frozen=True)
class TableSource:
    """An unpinned table: pin() returns a FileSource of a version's data files, other methods of
    Source raise ValueError. `columns`, `spool`: see FileSource.
    """

    uri: str
    columns: tuple[tuple[str, str], ...] = ()
    spool: bool = True

    def pin(self, spark: Any = None) -> FileSource:
        """A source of the data files of the table's version.

        Raises:
            ImportError: the table's library is missing.
            ValueError, OSError, HearthError: like Source.pin().
        """
        raise NotImplementedError

    def resumed(self, version: str) -> TableSource:
        """The source to resume a run that read `version`, a FileSource.version; a version that the
        user named takes precedence.
        """
        raise NotImplementedError

    def pinned(self, kind: TableFormat, version: str, files: Sequence[DataFile]) -> FileSource:
        """The source of these files."""
        source = FileSource(kind, self.uri, self.columns, self.spool, version)
        return source.pin_known(files, kind.schema(files))

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise invalid(f"{self.uri} is not pinned yet: call pin() first, in the driver")

    schema = splits = read = identity = _refuse
    remote = extent = property(_refuse)


def needed(module: str, extra: str) -> Any:
    """Imports a module of an optional package. Raises ImportError that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"hearth.data.{extra} needs the package {module.partition('.')[0]} on the driver: "
            f"pip install 'hearth-spark[{extra}]' ({error})"
        ) from error


def read_whole(uri: str, lister: Any) -> bytes:
    """Reads a small file. `lister`: the client from served()."""
    if lister is not None:
        return bytes(lister.read(uri))
    file = open_uri(uri)
    return bytes(file.read_at(0, file.size()))
