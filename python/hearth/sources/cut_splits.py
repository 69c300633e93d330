"""Creates splits from the units of files: combines small units, and divides large ones by rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hearth.files.stored_files import StoredFile
from hearth.sources.format import Unit
from hearth.sources.source import Piece, Split

# With LEAST_SPLITS, 16 ranks have 12 splits each, so a rank with an extra split has 8 % more rows.
# Each split costs an open file or a request, and a partition file on the node that reads it.
LEAST_SPLITS, MOST_SPLITS = 192, 4096
# With this many units of equal size, none is divided, because a reader of splits in random order
# decodes a divided unit from its beginning each time.
_FEW_UNITS = 48
# Small units are combined up to this size.
JOINED_BYTES = 32 << 20
_TOLERANCE = 1.25


def cut_splits(files: Sequence[StoredFile], units: Sequence[Sequence[Unit]]) -> tuple[Split, ...]:
    """Divides all rows of each file's `units`, in order, into splits. Deterministic."""
    total = sum(unit.bytes for of_file in units for unit in of_file)
    target = max(total / MOST_SPLITS, min(JOINED_BYTES, total / LEAST_SPLITS)) * _TOLERANCE
    splits: list[Split] = []
    current: _Joined | None = None
    for part in _cut(files, units, total / LEAST_SPLITS):
        if current is not None and current.takes(part, target, total / MOST_SPLITS):
            current.add(part)
            continue
        if current is not None:
            splits.append(current.split(len(splits)))
        current = _Joined(part.size, part.rows, part.hosts, list(part.pieces))
    if current is not None:
        splits.append(current.split(len(splits)))
    return tuple(splits)


@dataclass
class _Joined:
    """Ranges of units that form one split."""

    size: float
    rows: int | None
    hosts: frozenset[str]
    pieces: list[Piece] = field(default_factory=list)

    def takes(self, other: _Joined, target: float, least: float) -> bool:
        """Whether `other` may be added: the sum is within `target`, and one host stores all bytes,
        unless this split is below `least` or has no hosts."""
        if self.size + other.size > target:
            return False
        return self.size < least or not self.hosts or bool(self.hosts & other.hosts)

    def add(self, other: _Joined) -> None:
        self.size += other.size
        unknown = self.rows is None or other.rows is None
        self.rows = None if unknown else (self.rows or 0) + (other.rows or 0)
        self.hosts &= other.hosts
        self.pieces += other.pieces

    def split(self, number: int) -> Split:
        return Split(number, round(self.size), self.rows, self.hosts, tuple(self.pieces))


def _cut(
    files: Sequence[StoredFile], units: Sequence[Sequence[Unit]], share: float
) -> Iterator[_Joined]:
    """The units with rows; divides units much larger than `share` by rows."""
    for number, (file, of_file) in enumerate(zip(files, units, strict=True)):
        for unit in of_file:
            if unit.rows == 0:
                continue
            hosts = file.hosts_at(unit.start)
            count = 1
            if unit.rows is not None and unit.bytes > 1.5 * share * LEAST_SPLITS / _FEW_UNITS:
                count = min(unit.rows, round(unit.bytes / share))
            for i in range(count):
                piece, rows = Piece(number, unit.key, unit.rows), unit.rows
                if unit.rows is not None and count > 1:
                    begin, end = i * unit.rows // count, (i + 1) * unit.rows // count
                    piece, rows = Piece(number, unit.key, unit.rows, begin, end), end - begin
                yield _Joined(unit.bytes / count, rows, hosts, [piece])
