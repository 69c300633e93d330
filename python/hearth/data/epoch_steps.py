"""Divides the rows of an epoch into steps, the same number on every rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hearth.data.options import LoaderOptions
from hearth.data.position import Position, pass_seed, remaining
from hearth.errors import HearthError, invalid

if TYPE_CHECKING:
    from hearth.data.dataset import BatchRows, Dataset, RowReader

# If no row of a batch can be decoded, at most this many rows after the batch are tried as
# replacements.
_SPARE_ROWS, _SPARE_AT_ONCE = 1024, 16


@dataclass(frozen=True)
class Step:
    """The rows that one rank reads in one step of an epoch. Of `rows`, the first `unrepeated` are
    new and the others repeat. `end`: the position after the rows.
    """

    epoch: int
    rows: BatchRows
    unrepeated: int
    end: int


@dataclass(frozen=True)
class _PassRows:
    """The rows of an epoch's last pass: a reader of this rank's rows, and a function that returns
    each rank's row count (it may block until all counts are known).
    """

    reader: RowReader | _RepeatedRows
    count: Callable[[], Sequence[int]]


class _RepeatedRows:
    """Reader for a rank that has no rows left in an epoch: its steps only repeat rows."""

    def __init__(self, reader: RowReader):
        self._reader = reader

    def take(self, position: int, count: int, wrap: bool) -> BatchRows:
        """Rows to repeat if `wrap` is set, otherwise no rows."""
        return self._reader.take(position, count if wrap else 0, wrap)


class EpochSteps:
    """The steps of this rank in the epochs of a dataset. Thread-safe."""

    def __init__(self, dataset: Dataset, options: LoaderOptions):
        self._dataset, self._options = dataset, options

    def of_epoch(self) -> int:
        """The number of steps of a complete epoch; blocks until all rows are counted.

        Raises:
            ClusterError: the cluster failed.
        """
        return self._steps_of(self._end(self.rows_of_ranks()))

    def left(self, position: Position) -> int:
        """The number of steps from a position to the end of its epoch; blocks like of_epoch()."""
        end = self._end(self._open(position).count())
        return self._steps_of(max(0, end - position.taken))

    def rows_of_ranks(self) -> list[int]:
        """The number of rows of each rank; blocks until all rows are counted."""
        rows, _ = self._dataset.totals()
        return self._sum_by_rank(rows)

    def read(self, position: Position) -> Iterator[Step]:
        """Reads the steps from a position to the end of its epoch.

        Raises:
            ClusterError: the cluster failed.
        """
        try:
            yield from self._read(position)
        except HearthError:
            self._dataset.check()  # report a cluster failure as the cause
            raise

    def _read(self, position: Position) -> Iterator[Step]:
        options, size, at = self._options, self._options.batch_size, position.taken
        rows = self._open(position)
        rest = None  # this rank's rows from `at` on, fewer than a batch
        if options.uneven != "drop":
            # Full batches of this rank do not depend on other ranks' row counts.
            while (rest := rows.reader.take(at, size, False)).count == size:
                at += size
                yield Step(position.epoch, rest, size, at)
        end = self._end(rows.count())
        while at < end:
            count = min(size, end - at)
            if count < size and options.drop_last:
                return
            taken = rows.reader.take(at, count, False) if rest is None else rest
            rest = None
            unrepeated = taken.count
            if unrepeated < count:
                taken = rows.reader.take(at, count, True)
            at += count
            yield Step(position.epoch, taken, unrepeated, at)

    def rows_after(self, position: Position, step: Step) -> Iterator[BatchRows]:
        """Reads the rows after a step, up to a limit; wraps around at the epoch's end."""
        reader = self._open(position).reader
        for first in range(step.end, step.end + _SPARE_ROWS, _SPARE_AT_ONCE):
            yield reader.take(first, _SPARE_AT_ONCE, True)

    def _open(self, position: Position) -> _PassRows:
        plan, options = self._dataset.plan, self._options
        finished = position.passes[:-1]
        reader = self._dataset.reader(pass_seed(options.seed, 0), options.mode)
        if not finished:
            reader.start(position.epoch)
            return _PassRows(reader, self.rows_of_ranks)
        totals, _ = self._dataset.totals()
        left = remaining(finished, totals, options.seed, position.epoch, options.mode)
        counts = self._sum_by_rank(int(mask.sum()) for mask in left)
        owned = np.concatenate([left[p] for p in plan.owned] or [np.zeros(0, bool)])
        if not owned.any():
            reader.start(position.epoch)
            return _PassRows(_RepeatedRows(reader), lambda: counts)
        order_seed = pass_seed(options.seed, len(finished))
        reader.start(position.epoch, np.flatnonzero(owned), order_seed)
        return _PassRows(reader, lambda: counts)

    def _sum_by_rank(self, numbers: Iterable[int]) -> list[int]:
        """Sums a number per partition over the partitions of each rank."""
        sums = [0] * self._dataset.plan.world
        for owner, number in zip(self._dataset.plan.owners, numbers, strict=True):
            sums[owner] += number
        return sums

    def _end(self, counts: Sequence[int]) -> int:
        """The position at which an epoch ends on all ranks, whose row counts are `counts`."""
        if self._options.uneven == "drop":
            return min(counts)
        rows = self.rows_of_ranks()
        if max(counts) > 0 and min(rows) == 0:
            raise invalid(
                f"dataset {self._dataset.name!r} has {sum(rows)} rows for {len(rows)} ranks, of "
                f"which rank {rows.index(0)} has none to repeat: use fewer ranks, or uneven='drop'"
            )
        return max(counts)

    def _steps_of(self, rows: int) -> int:
        size = self._options.batch_size
        return rows // size if self._options.drop_last else -(-rows // size)
