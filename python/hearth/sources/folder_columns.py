"""Columns from folder names, such as day=1/part-0.parquet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

from hearth.errors import invalid
from hearth.files.stored_files import StoredFile

_NULL = "__HIVE_DEFAULT_PARTITION__"
_NUMBER = re.compile(r"[+-]?\d{1,10}")


@dataclass(frozen=True)
class FolderColumns:
    """Columns from folder names: 32-bit integers (`numbers`), as in pyarrow, and strings."""

    names: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()

    @classmethod
    def of(cls, files: Sequence[StoredFile]) -> FolderColumns:
        """Infers the columns from a source's files.

        Raises:
            ValueError: the files have different columns.
        """
        if not any(file.below for file in files):
            return cls()
        found = [folder_values(file.below) for file in files]
        names = tuple(found[0]) if found else ()
        for file, values in zip(files, found, strict=True):
            if tuple(values) != names:
                raise invalid(
                    f"the folders of {file.uri} name the columns {', '.join(values) or 'none'}, "
                    f"but those of {files[0].uri} name {', '.join(names) or 'none'}: pass a folder "
                    "whose files have the same columns"
                )
        numbers = {name for name in names if all(_is_number(values[name]) for values in found)}
        return cls(names, frozenset(numbers))

    def types(self) -> list[tuple[str, pa.DataType]]:
        """The name and the type of each column."""
        numbers = self.numbers
        return [(name, pa.int32() if name in numbers else pa.string()) for name in self.names]

    def arrays(self, below: str, rows: int) -> dict[str, pa.Array]:
        """Each column's values for `rows` rows of a file. `below`: see StoredFile."""
        if not self.names:
            return {}
        values, arrays = folder_values(below), {}
        for name, kind in self.types():
            value = values[name]
            number = value is not None and name in self.numbers
            arrays[name] = pa.repeat(pa.scalar(int(value) if number else value, kind), rows)
        return arrays


def folder_values(below: str) -> dict[str, str | None]:
    """Parses the folder names of a path, such as day=1, into columns and values."""
    found: dict[str, str | None] = {}
    for folder in below.split("/"):
        name, is_column, value = folder.partition("=")
        if is_column and name:
            found[unquote(name)] = None if value == _NULL else unquote(value)
    return found


def _is_number(value: str | None) -> bool:
    return value is None or (
        _NUMBER.fullmatch(value) is not None and -(1 << 31) <= int(value) < 1 << 31
    )
