"""The interface of files that ranks read directly: they are pinned once, and read in splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from hearth.files.input_files import Count


@dataclass(frozen=True)
class Piece:
    """Rows [begin, end) of a unit of a file, by default all of them.

    `file`: the file's index in the pinned files. `key`: identifies the unit to the format's reader.
    `rows`: the whole unit's row count; None if unknown, and then the piece is the whole unit.
    """

    file: int
    key: Any
    rows: int | None = None
    begin: int = 0
    end: int | None = None


@dataclass(frozen=True)
class Split:
    """Rows that one rank reads at once.

    `number`: the index in Source.splits(). `bytes`: the rows' approximate size in the files.
    `rows`: None if only known after reading. `hosts`: names and addresses of the hosts that store
    the rows; empty if unknown, or if no host is closer than another. `pieces`: used only by the
    source.
    """

    number: int
    bytes: int
    rows: int | None
    hosts: frozenset[str] = frozenset()
    pieces: tuple[Piece, ...] = field(default=(), repr=False)


class Source(Protocol):
    """A named set of rows. Immutable and thread-safe; pickled into Spark's closures.

    Call pin() first; until then, the other methods raise ValueError.
    """

    @property
    def uri(self) -> str:
        """The path or URI that the user passed."""

    @property
    def remote(self) -> bool:
        """Whether the files are in a remote file system, so splits may be local to some ranks."""

    @property
    def extent(self) -> str:
        """The size, for the log: "2 files with 123 bytes"."""

    def pin(self, spark: Any = None) -> Source:
        """Returns the source with its current files and split boundaries fixed.

        Args:
            spark: the driver's session, whose file systems are used; None: only this process's.

        Raises:
            ValueError: files are damaged or have another format, a column is missing, or the URI is
                a Delta, Iceberg or Hudi table.
            FileNotFoundError: the URI does not exist.
            OSError, HearthError: files cannot be listed or read.
        """

    def schema(self) -> pa.Schema:
        """The columns of every batch that read() returns."""

    def splits(self) -> list[Split]:
        """Splits that cover each row once: about 48 to 4096 if the files permit, none if there are
        no rows. They do not depend on the number of ranks.
        """

    def read(self, split: Split, count: Count | None = None) -> Iterator[pa.RecordBatch]:
        """Reads the split's rows, in the same batches each time.

        Args:
            split: one of splits(), or a split with some of their pieces.
            count: called with the number of bytes of each read from a remote file system.

        Raises:
            ValueError: a file has changed since pin(), or is damaged.
            OSError, HearthError: a file cannot be read.
        """

    def identity(self) -> str:
        """A hash of the pinned files, columns and boundaries."""
