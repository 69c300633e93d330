"""The interface of a format's reader: units of a file, each of which is read by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hearth.errors import HearthError, error_class
from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile

if TYPE_CHECKING:
    import pyarrow as pa

# Of a batch: so many rows, or fewer of about so many bytes.
BATCH_ROWS, BATCH_BYTES = 4096, 4 << 20


@dataclass(frozen=True)
class Unit:
    """A row group, a stripe, a record batch, a range of bytes or of keys.

    `key`: identifies it to the reader of its file. `start`: about where its first byte is. `bytes`:
    about how many it has. `rows`: None if known only after reading; such a unit is not
    cut further.
    """

    key: Any
    start: int
    bytes: int
    rows: int | None = None


class Reader(Protocol):
    """An open file, which pins and size checks precede. One thread at a time."""

    def read(self, key: Any) -> Iterator[pa.RecordBatch]:
        """A unit's rows, with the wanted columns, in the same batches each time."""


class Format(Protocol):
    """Stateless; any thread. Its methods raise ValueError for a damaged file or one of another
    format, OSError or HearthError for one that cannot be read; FileSource adds the file's name."""

    kind: str  # for messages
    in_folders = False  # columns may stand in the names of folders (day=1)
    one_database = False  # a reader of one of the files reads the others, too
    views = False  # binaries of a local file may be views of the mapped file

    def data_files(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        """Those of the listed files that have rows. May raise ValueError."""
        return list(files)

    def schema(self, files: Sequence[StoredFile]) -> pa.Schema:
        """The columns of the data files, of which there is at least one."""

    def units(self, file: StoredFile, share: int) -> list[Unit]:
        """A file's units, in order. `share`: about as many bytes as a unit without a number of rows
        should have, where the format can cut."""

    def joined(self, key: Any, following: Any) -> Any:
        """The key of two units as one; None where they do not follow each other in their file, or
        are read one by one."""
        return None

    def open(self, file: InputFile, schema: pa.Schema, keys: Sequence[Any]) -> Reader:
        """A reader of a file.

        Args:
            file: not opened yet.
            schema: the columns to read, of those that schema() gave; binaries may be views, where
                the format has `views`.
            keys: the units that will be read, in this order; some may be left out.
        """


@contextmanager
def errors_of(uri: str, kind: str) -> Iterator[None]:
    """Turns exceptions of pyarrow and of parsers into one line that names the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError, IndexError) as error:
        said = str(error).partition("\n")[0] or type(error).__name__
        if uri in said:
            raise
        line = f"{uri} cannot be read as {kind}: {said}"
        if isinstance(error, HearthError):
            raise error_class(error.code)(line) from None
        if isinstance(error, OSError) and not isinstance(error, pa.ArrowException):
            raise OSError(line) from None
        raise ValueError(line) from None


def not_empty(files: Sequence[StoredFile]) -> list[StoredFile]:
    """Without files of no bytes, which Spark leaves; the first one where all are such."""
    return [file for file in files if file.size] or list(files[:1])


def check_starts(uri: str, size: int, units: Sequence[Unit], what: str) -> list[Unit]:
    """The units; raises ValueError where one begins outside its file or has a negative size."""
    for number, unit in enumerate(units):
        if not 0 <= unit.start < size or unit.bytes < 0 or (unit.rows or 0) < 0:
            raise ValueError(
                f"{uri} is damaged: {what} {number} begins at byte {unit.start} of {size} with "
                f"{unit.rows} rows; write it again"
            )
    return list(units)


def check_columns(uri: str, known: Sequence[str], wanted: Sequence[str]) -> None:
    """Raises ValueError for a wanted column that is not known."""
    for name in wanted:
        if name not in known:
            raise ValueError(f"column '{name}' is not in {uri}, which has: {', '.join(known)}")


def batch_rows(size: int, rows: int) -> int:
    """Rows of a batch where `rows` have `size` bytes."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES * rows // max(1, size)))
