"""The interface of format readers: a file has units that can be read independently."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from hearth.errors import code_of, error_class, invalid
from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile

# Limits of a batch: rows, and approximate bytes.
BATCH_ROWS, BATCH_BYTES = 4096, 4 << 20


@dataclass(frozen=True)
class Unit:
    """A row group, a stripe, a record batch, a range of bytes or of keys.

    `key`: identifies it to the reader of its file. `start`: approximate offset of its first byte.
    `bytes`: approximate size. `rows`: None if known only after reading; such a unit is not divided
    further.
    """

    key: Any
    start: int
    bytes: int
    rows: int | None = None


# Reads a unit of an open file by its key: the rows with the selected columns, in the same batches
# each time. One thread at a time.
Read = Callable[[Any], Iterator[pa.RecordBatch]]


class Format(Protocol):
    """Stateless and thread-safe. Methods raise ValueError for a damaged file or one of another
    format, OSError or HearthError for one that cannot be read; FileSource adds the file's name."""

    kind: str  # for messages
    in_folders = False  # names of folders may hold columns (day=1)
    one_database = False  # the files form one database
    views = False  # binaries of a local file may be views of the mapped file

    def data_files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        """The listed files that have rows. May raise ValueError."""
        return list(files)

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        """The columns of the data files; there is at least one file."""

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        """A file's units in order. `share`: target size in bytes of units without a number of rows,
        if the format can divide them."""

    def joined(self, key: Any, following: Any) -> Any:
        """The key of two units as one; None if they are not adjacent in their file, or cannot be
        read together."""
        return None

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Read:
        """Opens a file, after pin and size checks; returns the function that reads its units.

        Args:
            file: not opened yet.
            schema: the selected columns of schema(); binaries may be views if the format has
                `views`.
            keys: the units to read, in this order; some may be skipped.
        """


@contextmanager
def errors_of(uri: str, kind: str) -> Iterator[None]:
    """Converts exceptions of pyarrow and of parsers to one line that names the file."""
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
    """Without empty files, which Spark writes; the first file if all are empty."""
    return [file for file in files if file.size] or list(files[:1])


def check_starts(uri: str, size: int, units: Sequence[Unit], what: str) -> list[Unit]:
    """The units; raises ValueError if one starts outside its file or has a negative size."""
    for number, unit in enumerate(units):
        if not 0 <= unit.start < size or unit.bytes < 0 or (unit.rows or 0) < 0:
            raise invalid(
                f"{uri} is damaged: {what} {number} begins at byte {unit.start} of {size}, with "
                f"{unit.bytes} bytes and {unit.rows} rows; write the file again"
            )
    return list(units)


def check_columns(uri: str, known: Sequence[str], wanted: Sequence[str]) -> None:
    """Raises ValueError for an unknown column."""
    for name in wanted:
        if name not in known:
            raise invalid(f"column '{name}' is not in {uri}, which has: {', '.join(known)}")


def batch_rows(size: int, rows: int) -> int:
    """Rows of a batch if `rows` rows have `size` bytes."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES * rows // max(1, size)))
