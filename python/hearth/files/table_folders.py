"""Recognises folders with a log that lists the current files: Delta, Iceberg and Hudi tables, and
the output of streaming queries. Reading all files of such a folder would return wrong rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from hearth.errors import HearthError, invalid
from hearth.files.core_files import CoreFiles

# Formats that a table's data files may have, by Spark's names.
DATA_FORMATS = ("parquet", "orc", "avro")
_DELTA, _HUDI, _ICEBERG, _STREAM = "delta", "hudi", "iceberg", ""
_MARKS = {"_delta_log": _DELTA, ".hoodie": _HUDI, "_spark_metadata": _STREAM}


class Listing(Protocol):
    """The methods of FileSystem and HadoopFiles that find_table() needs."""

    def exists(self, uri: str) -> bool:
        """Whether a file or folder exists at the URI."""

    def names(self, folder: str) -> Iterable[str]:
        """The names in a folder."""


@dataclass(frozen=True)
class Table:
    """A table. `format`: the table format's name for Spark's reader; empty for output of a
    streaming query, which Spark reads as plain files and filters by the log.
    """

    root: str
    format: str

    def refusal(self, uri: str) -> str:
        """Explains why files of the table are not read as plain files, and what to do."""
        if self.format:
            what, others = f"{self.format.capitalize()} table", "that were removed from the table"
            how = f'spark.read.format("{self.format}").load("{self.root}")'
            if self.format in (_DELTA, _ICEBERG):
                how = f'hearth.data.{self.format}("{self.root}"), or with {how}'
            layer = f' (dataframe_format: "{self.format}" in a data layer)'
        else:
            what, others = "output of a streaming query", "of failed attempts"
            how, layer = f'spark.read.load("{self.root}")', ""
        return (
            f"{uri} belongs to the {what} {self.root}, whose folder may hold files {others}: read "
            f"it with {how}{layer} and feed the DataFrame, or write its rows as plain Parquet files"
        )


def find_table(uri: str, files: Listing | None = None) -> Table | None:
    """Finds the table that is, or contains, the file or folder at a path or URI.

    `files`: the client for the URI; None: the core.
    """
    with suppress(ConnectionError, TimeoutError):
        return _find(uri, files or CoreFiles())
    return None  # other calls would time out, too; reading the files reports the error


def _find(uri: str, files: Listing) -> Table | None:
    for root in _possible_roots(uri):
        for mark, name in _MARKS.items():
            if _answer(files.exists, f"{root}/{mark}"):
                return Table(root, name)
        # Check the names, because a plain folder may also contain a folder "metadata".
        names = _answer(files.names, f"{root}/metadata") or ()
        if any(".metadata.json" in name for name in names):
            return Table(root, _ICEBERG)
    return None


def refuse_table(uri: str, files: Listing | None = None) -> None:
    """Raises ValueError if find_table() finds a table."""
    if (table := find_table(uri, files)) is not None:
        raise invalid(table.refusal(uri))


def _answer(ask: Callable[[str], object], uri: str) -> object:
    """Calls `ask`; returns None if it fails, because reading the files then reports the error."""
    try:
        return ask(uri)
    except (ConnectionError, TimeoutError):
        raise
    except (OSError, ValueError, HearthError):
        return None


def _possible_roots(uri: str) -> Iterator[str]:
    """The path itself, then each parent whose table may contain it: as a file (with a suffix), a
    partition (day=1), or an Iceberg table's `data` folder.
    """
    root = uri.rstrip("/")
    yield root
    above, _, name = root.rpartition("/")
    while above and not above.endswith(":/") and ("." in name or "=" in name or name == "data"):
        yield above
        above, _, name = above.rpartition("/")
