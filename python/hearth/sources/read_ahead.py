"""Fetches the next unit of a remote file while the current one is decoded."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

# Ranges with smaller gaps are fetched in one request.
_GAP_BYTES = 1 << 20

Range = tuple[int, int]
_Fetched = list[tuple[int, bytes]]


class ReadAhead:
    """A file for pyarrow, with size() and read_at(). One thread reads, another one fetches.

    Memory: two stored units.
    """

    def __init__(self, file: Any, units: Mapping[Any, Sequence[Range]]):
        """`file`: with thread-safe size() and read_at(). `units`: the byte ranges of each unit to
        read, in this order."""
        self._file = file
        self._units = units
        keys = list(units)
        self._following = dict(itertools.pairwise(keys))
        self._fetched: _Fetched = []
        self._coming: dict[Any, Future[_Fetched]] = {}
        self._pool = ThreadPoolExecutor(1, "hearth-ahead")

    def size(self) -> int:
        """The size in bytes."""
        size: int = self._file.size()
        return size

    def read_at(self, at: int, size: int) -> bytes:
        """`size` bytes from an offset: fetched ahead, or read now."""
        for begin, data in self._fetched:
            if begin <= at and at + size <= begin + len(data):
                return data[at - begin : at - begin + size]
        found: bytes = self._file.read_at(at, size)
        return found

    def begin(self, key: Any) -> None:
        """Waits for a unit's bytes, and starts to fetch the next unit."""
        coming = self._coming.pop(key, None) or self._fetch(key)
        self._coming.clear()
        if key in self._following:
            following = self._following[key]
            self._coming[following] = self._fetch(following)
        self._fetched = []
        self._fetched = coming.result()

    def _fetch(self, key: Any) -> Future[_Fetched]:
        return self._pool.submit(self._read, self._units[key])

    def _read(self, ranges: Sequence[Range]) -> _Fetched:
        size = self.size()  # a damaged footer may have invalid offsets, which fail when read
        sane = ((begin, min(end, size)) for begin, end in ranges if 0 <= begin < min(end, size))
        return [(begin, self._file.read_at(begin, end - begin)) for begin, end in joined(sane)]


def joined(ranges: Iterable[Range]) -> list[Range]:
    """The sorted ranges, with those close to each other merged."""
    found: list[Range] = []
    for begin, end in sorted(ranges):
        if found and begin - found[-1][1] < _GAP_BYTES:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found
