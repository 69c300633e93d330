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
    """Rows that one rank reads in one go.

    `number`: its index in Source.splits(). `bytes`: about how many the files have for it. `rows`:
    None if known only after reading. `hosts`: names and addresses of the hosts that have its bytes;
    empty where that is unknown or no host is nearer than another. `pieces`: for the source alone.
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
        """Where the files are, as the user gave it."""

    @property
    def remote(self) -> bool:
        """Whether other hosts have the bytes, and splits may be nearer to some ranks."""

    @property
    def extent(self) -> str:
        """How much there is, for the log: 2 files with 123 bytes."""

    def pin(self, spark: Any = None) -> Source:
        """The same source with the files that there are now, and the splits' boundaries.

        Args:
            spark: the driver's session, whose file systems are asked; None: none.

        Raises:
            ValueError: damaged files, or of another format; a missing column; a table of Delta,
                Iceberg or Hudi.
            FileNotFoundError: nothing is there.
            OSError, HearthError: files cannot be listed or read.
        """

    def schema(self) -> pa.Schema:
        """The columns of every batch that read() gives."""

    def splits(self) -> list[Split]:
        """All rows, each in one split. The list does not depend on the number of ranks: about 48 to
        4096 where the files allow it; empty where there is no row."""

    def read(self, split: Split, count: Count | None = None) -> Iterator[pa.RecordBatch]:
        """The split's rows, in the same batches each time.

        Args:
            split: of splits(), or of pieces of these.
            count: called with the number of bytes of each read from another file system.

        Raises:
            ValueError: a file is not as it was pinned, or is damaged.
            OSError, HearthError: it cannot be read.
        """

    def identity(self) -> str:
        """A hash of what is pinned: other files, columns or boundaries, another text."""
