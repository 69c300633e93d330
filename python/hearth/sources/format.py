"""The interface of format readers. A file consists of units that can be read independently."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from hearth.errors import code_of, error_class, invalid
from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile

# Limits for a batch: number of rows, and approximate number of bytes.
BATCH_ROWS, BATCH_BYTES = 4096, 4 << 20


@dataclass(frozen=True)
class Unit:
    """A part of a file: a row group, a stripe, a record batch, a range of bytes or of keys.

    `key`: identifies the unit to the file's reader. `start`: approximate offset of the first byte.
    `bytes`: approximate size. `rows`: None if it is only known after reading; such a unit is not
    divided.
    """

    key: Any
    start: int
    bytes: int
    rows: int | None = None


# Reads a unit of an open file by its key. Yields rows with the selected columns, in the same
# batches each time. Not thread-safe.
Read = Callable[[Any], Iterator[pa.RecordBatch]]


class Format(Protocol):
    """Reads files of one format. Stateless and thread-safe. Methods raise ValueError if a file is
    damaged or has another format, OSError or HearthError if it cannot be read; FileSource adds the
    file's name.
    """

    kind: str  # name for messages
    in_folders = False  # folder names may contain columns (day=1)
    one_database = False  # all files of a source form one database
    views = False  # binaries may be views of a mapped local file

    def data_files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        """The listed files that have rows. May raise ValueError."""
        return list(files)

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        """The columns of the data files, of which there is at least one."""

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        """A file's units, in order. `share`: target size in bytes of units with unknown row counts,
        if the format can divide them.
        """

    def joined(self, key: Any, following: Any) -> Any:
        """The key of two units combined; None unless they are adjacent and can be read together."""
        return None

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Read:
        """Opens a pinned file, checked for changes; returns the function that reads its units.

        Args:
            file: the file, not opened yet.
            schema: the selected columns of schema(); binaries may be views if the format has
                `views`.
            keys: the units that will be read, in this order; the caller may skip some.
        """


@contextmanager
def errors_of(uri: str, kind: str) -> Iterator[None]:
    """Converts exceptions of pyarrow and parsers to errors with one line that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError, IndexError) as error:
        said = str(error).partition("\n")[0] or type(error).__name__
        if uri in said:
            raise
        line = f"{uri} cannot be read as {kind}: {said}"
        damaged = isinstance(error, (pa.ArrowException, OverflowError, IndexError))
        raise error_class("invalid_argument" if damaged else code_of(error))(line) from error


def not_empty(files: Sequence[StoredFile]) -> list[StoredFile]:
    """Omits empty files, which Spark writes; keeps the first file if all are empty."""
    return [file for file in files if file.size] or list(files[:1])


def check_starts(uri: str, size: int, units: Sequence[Unit], what: str) -> list[Unit]:
    """Returns the units; raises ValueError if a start, size or number of rows is invalid."""
    for number, unit in enumerate(units):
        if not 0 <= unit.start < size or unit.bytes < 0 or (unit.rows or 0) < 0:
            raise invalid(
                f"{uri} is damaged: {what} {number} begins at byte {unit.start} of {size}, with "
                f"{unit.bytes} bytes and {unit.rows} rows; write the file again"
            )
    return list(units)


def check_columns(uri: str, known: Sequence[str], wanted: Sequence[str]) -> None:
    """Raises ValueError if a column is unknown."""
    for name in wanted:
        if name not in known:
            raise invalid(f"column '{name}' is not in {uri}, which has: {', '.join(known)}")


def batch_rows(size: int, rows: int) -> int:
    """The number of rows per batch, given that `rows` rows have `size` bytes."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES * rows // max(1, size)))
