"""Fetches the next unit of a remote file while the current one is decoded."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

# Ranges are fetched in one request if the gap between them is smaller than this.
_GAP_BYTES = 1 << 20

Range = tuple[int, int]
_Fetched = list[tuple[int, bytes]]


class ReadAhead:
    """A file for pyarrow, with size() and read_at(). One thread reads, another one prefetches.

    Memory: two units as stored.
    """

    def __init__(self, file: Any, units: Mapping[Any, Sequence[Range]]):
        """`file` has thread-safe size() and read_at(). `units`: the byte ranges of the units to
        read, in reading order.
        """
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
        """Returns `size` bytes from an offset, fetched ahead or otherwise read now."""
        for begin, data in self._fetched:
            if begin <= at and at + size <= begin + len(data):
                return data[at - begin : at - begin + size]
        found: bytes = self._file.read_at(at, size)
        return found

    def begin(self, key: Any) -> None:
        """Waits until a unit is fetched, and starts to fetch the next one."""
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
        size = self.size()  # a damaged footer's invalid offsets fail later, when read
        sane = ((begin, min(end, size)) for begin, end in ranges if 0 <= begin < min(end, size))
        return [(begin, self._file.read_at(begin, end - begin)) for begin, end in joined(sane)]


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Sorts the ranges, and merges ranges that are close to each other."""
    found: list[Range] = []
    for begin, end in sorted(ranges):
        if found and begin - found[-1][1] < _GAP_BYTES:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found
