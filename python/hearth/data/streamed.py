"""Streams the files again in each epoch, for sources that are larger than the disks.

The order of splits depends on the seed and the epoch, and rows are shuffled within a window of
splits. Memory contains two windows: the current and the next one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hearth.errors import invalid
from hearth.rows.columns import Columns

if TYPE_CHECKING:
    import pyarrow as pa

    from hearth.data.dataset import Plan

# A window ends with the split that brings it to this many rows, or bytes in the files.
_WINDOW_ROWS = 16384
_WINDOW_BYTES = 64 << 20


@dataclass(frozen=True)
class _Window:
    """Consecutive splits in an epoch's order; `first`: the position of its first row."""

    number: int
    first: int
    rows: int
    splits: tuple[int, ...]


class StreamedRows:
    """Rows of an epoch with the interface of the core's SelectedRows."""

    def __init__(self, batch: pa.RecordBatch, seeds: np.ndarray):
        self._columns = Columns(batch)
        self._seeds = seeds

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self._columns)

    def gather(self, name: str, ragged: bool = False) -> Any:
        """A column as an array, or a list of strings or binaries, owned by the caller."""
        array = self._columns.array(name, ragged)
        return list(array) if array.dtype == object else array.copy()

    def ids(self) -> np.ndarray:
        """A seed per row, derived from seed, epoch, split and the row's number in the split."""
        return self._seeds


class StreamReader:
    """Reads a rank's rows by position in an epoch, like the core's EpochReader. Not thread-safe."""

    def __init__(self, source: Any, owned: Sequence[int], seed: int, mode: str):
        """`source`: a pinned source of hearth.sources. `mode`: "window" or "none"."""
        self._source, self._seed, self._mode = source, seed, mode
        every = source.splits()
        self._splits = [every[number] for number in owned]
        self._epoch = 0
        self._windows: list[_Window] = []
        self._loaded: dict[int, Future[tuple[pa.Table, np.ndarray]]] = {}
        self._pool = ThreadPoolExecutor(1, "hearth-stream")

    def start(self, epoch: int, remaining: Any = None, order_seed: int | None = None) -> None:
        """Starts an epoch.

        Raises:
            ValueError: `remaining` is set, but only whole epochs can be streamed.
        """
        if remaining is not None:
            raise invalid(
                "a dataset with spool=False can be resumed with another number of ranks only at "
                "the beginning of an epoch: resume with the same number, or omit spool=False"
            )
        self._epoch = epoch
        self._loaded.clear()
        self._windows = list(self._cut(self._order()))

    def rows(self) -> int:
        """The number of the rank's rows in an epoch."""
        return sum(split.rows for split in self._splits)

    def take(self, position: int, count: int, wrap: bool = False) -> StreamedRows:
        """Returns `count` rows from `position` on. At the epoch's end it wraps around if `wrap` is
        set, and otherwise returns fewer rows.

        Raises the source's read errors.
        """
        import pyarrow as pa

        total = self.rows()
        if not wrap:
            count = max(0, min(count, total - position))
        parts: list[pa.Table] = []
        seeds: list[np.ndarray] = []
        while count > 0:
            window = self._window_at(position % total)
            table, numbers = self._load(window)
            begin = position % total - window.first
            part = slice(begin, min(begin + count, window.rows))
            parts.append(table.slice(part.start, part.stop - part.start))
            seeds.append(numbers[part])
            count -= part.stop - part.start
            position += part.stop - part.start
        if not parts:
            return StreamedRows(pa.RecordBatch.from_pylist([], self._source.schema()), np.zeros(0))
        batches = pa.concat_tables(parts).combine_chunks().to_batches()
        return StreamedRows(batches[0], np.concatenate(seeds))

    def _order(self) -> list[int]:
        """Indices of the rank's splits in the epoch's order."""
        indices = list(range(len(self._splits)))
        if self._mode == "none":
            return indices

        def key_of(index: int) -> bytes:
            text = f"{self._seed} {self._epoch} {self._splits[index].number}"
            return hashlib.blake2b(text.encode(), digest_size=16).digest()

        return sorted(indices, key=key_of)

    def _cut(self, order: Sequence[int]) -> Any:
        """Divides the epoch's splits into windows."""
        first, number, taken = 0, 0, []
        rows = size = 0
        for index in order:
            taken.append(index)
            rows += self._splits[index].rows
            size += self._splits[index].bytes
            if rows >= _WINDOW_ROWS or size >= _WINDOW_BYTES:
                yield _Window(number, first, rows, tuple(taken))
                first, number, taken = first + rows, number + 1, []
                rows = size = 0
        if rows:
            yield _Window(number, first, rows, tuple(taken))

    def _window_at(self, position: int) -> _Window:
        firsts = [window.first for window in self._windows]
        return self._windows[int(np.searchsorted(firsts, position, side="right")) - 1]

    def _load(self, window: _Window) -> tuple[pa.Table, np.ndarray]:
        """Returns a window's shuffled rows and their seeds; starts to read the next window."""
        following = (window.number + 1) % len(self._windows)
        wanted = dict.fromkeys((window.number, following))
        self._loaded = {number: self._loaded[number] for number in wanted if number in self._loaded}
        for number in wanted:
            if number not in self._loaded:
                self._loaded[number] = self._pool.submit(self._read, self._windows[number])
        return self._loaded[window.number].result()

    def _read(self, window: _Window) -> tuple[pa.Table, np.ndarray]:
        import pyarrow as pa

        batches, seeds = [], []
        for index in window.splits:
            split = self._splits[index]
            read = list(self._source.read(split))
            if (found := sum(batch.num_rows for batch in read)) != split.rows:
                raise invalid(
                    f"a split of {self._source.uri} has {found} rows instead of {split.rows}: "
                    "the files have changed since the run began"
                )
            batches += read
            seeds.append(_mixed(np.arange(found), self._seed, self._epoch, split.number))
        table = pa.Table.from_batches(batches, self._source.schema())
        numbers = np.concatenate(seeds)
        if self._mode == "none":
            return table, numbers
        order = np.argsort(
            _mixed(np.arange(len(numbers)), self._seed, self._epoch, -1), kind="stable"
        )
        return table.take(order), numbers[order]


class StreamedDataset:
    """A dataset of files that are not spooled, on one node. Thread-safe."""

    def __init__(self, name: str, plan: Plan, source: Any):
        """`source`: a pinned source whose splits have known row counts."""
        self.name, self.plan, self._source = name, plan, source
        rows = [split.rows for split in source.splits()]
        self._totals = rows, [""] * len(rows)

    def reader(self, seed: int, mode: str) -> StreamReader:
        """Creates a reader of this rank's rows.

        Raises:
            ValueError: a full shuffle was requested, which needs all rows to be spooled.
        """
        if mode == "full":
            raise invalid(
                f"dataset {self.name!r} has spool=False, which only supports shuffling in "
                "windows: set shuffle=True"
            )
        return StreamReader(self._source, self.plan.owned, seed, mode)

    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._source.schema().names)

    def totals(self) -> tuple[list[int], list[str]]:
        """(rows, hash of the rows) of each partition."""
        return self._totals

    def known_partitions(self) -> list[list[Any] | None] | None:
        """[rows, hash] of each partition."""
        return [list(known) for known in zip(*self._totals, strict=True)]

    def check(self) -> None:
        """Raises ClusterError if the cluster has failed."""

    def fail(self, reason: str) -> None:
        """Called when the cluster has failed; does nothing, because only files are read."""


def _mixed(numbers: np.ndarray, seed: int, epoch: int, part: int) -> np.ndarray:
    """Hashes numbers to pseudorandom 64-bit numbers that depend on all arguments, with the
    finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
    """
    mask = (1 << 64) - 1
    key = hashlib.blake2b(f"{seed & mask} {epoch} {part}".encode(), digest_size=8).digest()
    values = numbers.astype(np.uint64) + np.uint64(int.from_bytes(key, "little"))
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
