"""A Parquet file elsewhere, whose next row group comes while pyarrow decodes the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# Chunks of columns with less than this between them are fetched at once.
_GAP_BYTES = 1 << 20

Range = tuple[int, int]


class GroupInput:
    """What CoreInput reads: the file itself, but for bytes of groups that were fetched.

    One thread reads; another one fetches. In memory are two groups, as they are stored.
    """

    def __init__(self, file: Any):
        """`file`: of the core, or another that has size() and read_at() for any thread."""
        self._file = file
        self._fetched: list[tuple[int, bytes]] = []

    def size(self) -> int:
        return self._file.size()

    def read_at(self, at: int, size: int) -> bytes:
        for begin, data in self._fetched:
            if begin <= at and at + size <= begin + len(data):
                return data[at - begin : at - begin + size]
        return self._file.read_at(at, size)

    def each(self, groups: Sequence[Sequence[Range]]) -> Iterator[int]:
        """The number of each group, when its ranges are here; meanwhile the next ones come."""
        with ThreadPoolExecutor(1, "hearth-ahead") as pool:
            ahead: list[Future[list[tuple[int, bytes]]]] = []
            for number in range(len(groups) + 1):
                if number < len(groups):
                    ahead.append(pool.submit(self._fetch, groups[number]))
                if number > 0:
                    self._fetched = ahead.pop(0).result()
                    yield number - 1
            self._fetched = []

    def _fetch(self, ranges: Sequence[Range]) -> list[tuple[int, bytes]]:
        size = self._file.size()  # a damaged footer may name any place; reading it is an error
        sane = ((begin, min(end, size)) for begin, end in ranges if 0 <= begin < min(end, size))
        return [(begin, self._file.read_at(begin, end - begin)) for begin, end in sane]


def ranges_of(group: pq.RowGroupMetaData, columns: Sequence[str]) -> list[Range]:
    """Where a group's chunks of these columns lie, all of them where there are none given."""
    chunks = []
    for i in range(group.num_columns):
        column = group.column(i)
        if columns and column.path_in_schema.partition(".")[0] not in columns:
            continue
        begin = start_of(column)
        chunks.append((begin, begin + column.total_compressed_size))
    ranges: list[Range] = []
    for begin, end in sorted(chunks):
        if ranges and begin - ranges[-1][1] < _GAP_BYTES:
            ranges[-1] = (ranges[-1][0], max(end, ranges[-1][1]))
        else:
            ranges.append((begin, end))
    return ranges


def start_of(column: pq.ColumnChunkMetaData) -> int:
    """Where a chunk's first byte lies."""
    if column.has_dictionary_page and column.dictionary_page_offset:
        return min(column.dictionary_page_offset, column.data_page_offset)
    return column.data_page_offset
