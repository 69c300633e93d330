"""The part of a table's source that is the same for all systems of tables."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from hearth.errors import invalid
from hearth.files.input_files import Count, open_uri
from hearth.sources.file_source import FileSource
from hearth.sources.source import Split
from hearth.sources.tables.data_files import DataFile
from hearth.sources.tables.format import TableFormat

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TableSource:
    """A Source before its pin(), which returns a FileSource of the version's data files. `columns`,
    `spool`: as of FileSource."""

    uri: str
    columns: tuple[tuple[str, str], ...] = ()
    spool: bool = True

    def pin(self, spark: Any = None) -> FileSource:
        """The source of the data files that the table's version has.

        Raises:
            ImportError: the table's library is missing.
            ValueError, OSError, HearthError: as for Source.pin().
        """
        raise NotImplementedError

    def resumed(self, version: str) -> TableSource:
        """The source for a run that goes on, which had this FileSource.version; where the user
        names one, that counts."""
        raise NotImplementedError

    def pinned(self, kind: TableFormat, version: str, files: Sequence[DataFile]) -> FileSource:
        """The source of these files."""
        source = FileSource(kind, self.uri, self.columns, self.spool, version)
        return source.pin_known(files, kind.schema(files))

    @property
    def remote(self) -> bool:
        """Raises ValueError: pin() comes first."""
        self._refuse()

    @property
    def extent(self) -> str:
        """Raises ValueError: pin() comes first."""
        self._refuse()

    def schema(self) -> pa.Schema:
        """Raises ValueError: pin() comes first."""
        self._refuse()

    def splits(self) -> list[Split]:
        """Raises ValueError: pin() comes first."""
        self._refuse()

    def read(self, split: Split, count: Count | None = None) -> Iterator[pa.RecordBatch]:
        """Raises ValueError: pin() comes first."""
        self._refuse()

    def identity(self) -> str:
        """Raises ValueError: pin() comes first."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise invalid(f"{self.uri} is not pinned yet: call pin() first, in the driver")


def lend(spark: Any) -> None:
    """Lets the core read on the driver, too, what Spark's session may read."""
    if spark is not None:
        from hearth.spark.token_forwarder import forward_tokens

        forward_tokens(spark)


def needed(module: str, extra: str) -> Any:
    """A module of an optional package. Raises ImportError that names what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"hearth.data.{extra} needs the package {module.partition('.')[0]} on the driver: "
            f"pip install 'hearth-spark[{extra}]' ({error})"
        ) from error


def read_whole(uri: str, lister: Any) -> bytes:
    """The content of a small file. `lister`: as of served()."""
    if lister is not None:
        return bytes(lister.read(uri))
    file = open_uri(uri)
    return bytes(file.read_at(0, file.size()))
