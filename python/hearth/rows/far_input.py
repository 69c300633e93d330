"""Files that lie elsewhere, open for reading: as the driver saw them, with their bytes counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hearth.files.core_input import CoreInput
from hearth.files.hadoop_shell import use_core_as_hadoop_user
from hearth.files.library_files import LibraryFiles, LibraryInput
from hearth.files.uri import CORE_SCHEMES, scheme
from hearth.rows.file_parts import Part, StoredFile
from hearth.rows.rank_files import Count

if TYPE_CHECKING:
    import pyarrow as pa


def whole(file: StoredFile, host: frozenset[str] = frozenset()) -> Part:
    """The file as one part, near where `host` has all of its blocks."""
    near = all(host & block.hosts for block in file.cover)
    return Part(file.uri, file.size, 0, file.size, near=near, modified_s=file.modified_s)


def open_part(part: Part, count: Count) -> pa.PythonFile:
    """The part's file for pyarrow, which tells `count` of what it reads. Raises as check() does."""
    return counted(checked(part), part, count)


def counted(file: Any, part: Part, count: Count) -> pa.PythonFile:
    """An open file of the part's for pyarrow."""
    import pyarrow as pa

    return pa.PythonFile(CoreInput(file, lambda size: count(size, part.near)), mode="r")


def checked(part: Part) -> Any:
    """The part's file, which has size() and read_at(); raises as check() does."""
    file = open_uri(part.uri)
    check(part)
    return file


def open_uri(uri: str) -> Any:
    """A file of the core's, or of a library's, with size() and read_at() for any thread.

    Raises:
        OSError, HearthError: it cannot be opened.
    """
    from hearth.native._core import InputFile

    if not by_core(uri):
        return LibraryInput(uri)
    use_core_as_hadoop_user()
    return InputFile(uri)


def by_core(uri: str) -> bool:
    """Whether the core's storage reads it, rather than a library."""
    return scheme(uri) in ("", "file", *CORE_SCHEMES)


def check(part: Part) -> None:
    """Raises ValueError where the file is not as the driver saw it, OSError where nobody knows."""
    found = _stat(part.uri)
    if found is None:
        what = "is gone"
    elif found[0] != part.size:
        what = f"has {found[0]} bytes instead of {part.size}"
    elif part.modified_s and found[1] != part.modified_s:
        what = "was written again"
    else:
        return
    raise ValueError(
        f"{part.uri} {what}: nodes read the files that the driver found first; put the file back, "
        "or start the program anew"
    )


def _stat(uri: str) -> tuple[int, int] | None:
    """(bytes, seconds since 1970 when it was written last); None where it is gone."""
    from hearth.native._core import stat_file

    if by_core(uri):
        status = stat_file(uri)
        return status and (status.size, status.modified_ms // 1000)
    info = LibraryFiles().stat(uri)
    return info and (info.size, (info.mtime_ns or 0) // 1_000_000_000)


def check_columns(uri: str, known: Sequence[str], columns: Sequence[str]) -> None:
    """Raises ValueError for one of `columns` that is not known."""
    for name in columns:
        if name not in known:
            raise ValueError(f"column '{name}' is not in {uri}, which has: {', '.join(known)}")


@dataclass(frozen=True)
class FarPiece:
    """Rows [begin, end), by default all, of what is read as a whole from a part's file: a row
    group, a stripe, a stretch between two marks.

    `number`: its own, in its file. `start`: its first byte: it belongs to the part that has this.
    `rows`: how many it has, where that is known. `footer`: of its file, where that has been read.
    """

    part: Part
    number: int
    start: int = 0
    rows: int | None = None
    footer: Any = None
    begin: int = 0
    end: int | None = None


def within(part: Part, pieces: Sequence[FarPiece], what: str) -> list[FarPiece]:
    """Those of its file's pieces that begin in the part.

    Raises:
        ValueError: one begins outside the file: it would be in nobody's part.
    """
    for piece in pieces:
        if not 0 <= piece.start < part.size:
            raise ValueError(
                f"{part.uri} is damaged: it says that its {what} {piece.number} begins at byte "
                f"{piece.start} of {part.size}; write it again"
            )
    return [piece for piece in pieces if part.begin <= piece.start < part.end]
