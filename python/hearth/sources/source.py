"""The interface of files that ranks read themselves: pinned once, read in splits."""

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

    `file`: its index in the pinned files. `key`: identifies the unit to the format's reader.
    `rows`: of the whole unit; None: unknown, and then the piece is the whole unit.
    """

    file: int
    key: Any
    rows: int | None = None
    begin: int = 0
    end: int | None = None


@dataclass(frozen=True)
class Split:
    """Rows that one rank reads at once.

    `number`: its index in Source.splits(). `bytes`: their approximate size in the files. `rows`:
    None until read. `hosts`: names and addresses of the hosts that store them; empty if unknown, or
    if all hosts store them alike. `pieces`: for the source only.
    """

    number: int
    bytes: int
    rows: int | None
    hosts: frozenset[str] = frozenset()
    pieces: tuple[Piece, ...] = field(default=(), repr=False)


class Source(Protocol):
    """A named set of rows. Immutable, and pickled into Spark's closures; any thread may use it.

    pin() comes first; the other methods raise ValueError before.
    """

    @property
    def uri(self) -> str:
        """The path or URI that the user passed."""

    @property
    def remote(self) -> bool:
        """Whether the files are on other hosts, so that splits may be local to some ranks."""

    @property
    def extent(self) -> str:
        """The size, for the log: "2 files with 123 bytes"."""

    def pin(self, spark: Any = None) -> Source:
        """The source with its current files and split boundaries fixed.

        Args:
            spark: the driver's session, whose file systems are used; None: this process's only.

        Raises:
            ValueError: damaged files, or of another format; a missing column; a table of Delta,
                Iceberg or Hudi.
            FileNotFoundError: it does not exist.
            OSError, HearthError: files cannot be listed or read.
        """

    def schema(self) -> pa.Schema:
        """The columns of every batch of read()."""

    def splits(self) -> list[Split]:
        """Splits that cover each row once, whatever the number of ranks: about 48 to 4096 if the
        files allow it; none without rows."""

    def read(self, split: Split, count: Count | None = None) -> Iterator[pa.RecordBatch]:
        """The split's rows, in the same batches each time.

        Args:
            split: of splits(), or of pieces of these.
            count: called with the number of bytes of each read from another file system.

        Raises:
            ValueError: a file has changed since pin(), or is damaged.
            OSError, HearthError: it cannot be read.
        """

    def identity(self) -> str:
        """A hash of the pinned files, columns and boundaries."""
