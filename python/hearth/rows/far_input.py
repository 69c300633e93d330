"""Files that lie elsewhere, open for reading: as the driver saw them, with their bytes counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hearth.files.core_input import CoreInput
from hearth.files.input_files import open_uri, status_of
from hearth.files.stored_files import StoredFile
from hearth.rows.file_parts import Part
from hearth.rows.rank_files import Count

if TYPE_CHECKING:
    import pyarrow as pa


def whole(file: StoredFile, host: frozenset[str] = frozenset()) -> Part:
    """The file as one part, near where `host` has all of its blocks."""
    near = all(host & block.hosts for block in file.cover)
    return Part(file.uri, file.size, 0, file.size, near=near, modified_s=file.modified_ms // 1000)


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


def check(part: Part) -> None:
    """Raises ValueError where the file is not as the driver saw it, OSError where nobody knows."""
    found = status_of(part.uri)
    if found is None:
        what = "is gone"
    elif found[0] != part.size:
        what = f"has {found[0]} bytes instead of {part.size}"
    elif part.modified_s and found[1] // 1000 != part.modified_s:
        what = "was written again"
    else:
        return
    raise ValueError(
        f"{part.uri} {what}: nodes read the files that the driver found first; put the file back, "
        "or start the program anew"
    )


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
