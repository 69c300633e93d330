"""Reads row ranges of units. If a range ends inside its unit, the reader stays open, so that
consecutive splits of a row group decode the row group only once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING

from hearth.errors import invalid

if TYPE_CHECKING:
    import pyarrow as pa

# Limit of open readers. Few, because each reader buffers a decoded batch and stored data, up to a
# row group.
_OPEN_UNITS = 2


class OpenUnits:
    """Readers of partly read units. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[Hashable, _Rows] = OrderedDict()

    def read(
        self,
        key: Hashable,
        piece: tuple[int, int | None, int | None],
        start: Callable[[], Iterator[pa.RecordBatch]],
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows [begin, end) of a unit.

        Args:
            key: identifies the unit among all units.
            piece: begin, end (None: the unit's end), and the unit's number of rows, if known.
            start: reads the unit from its first row.

        Raises:
            ValueError: the unit does not have the stated number of rows.
        """
        begin, end, total = piece
        rows = self._take(key, begin) or _Rows(start())
        for _ in rows.up_to(begin):  # skip the rows before `begin`
            pass
        last = total if end is None else end
        yield from rows.up_to(last)
        if last is not None and total is not None and last < total:
            self._keep(key, rows)
        elif last is not None:
            rows.check_end()

    def _take(self, key: Hashable, begin: int) -> _Rows | None:
        """Removes and returns the unit's open reader, unless it is past row `begin`."""
        with self._lock:
            rows = self._open.get(key)
            return self._open.pop(key) if rows is not None and rows.row <= begin else None

    def _keep(self, key: Hashable, rows: _Rows) -> None:
        with self._lock:
            self._open[key] = rows
            self._open.move_to_end(key)
            while len(self._open) > _OPEN_UNITS:
                self._open.popitem(last=False)


class _Rows:
    """The unread rows of a unit. Not thread-safe."""

    def __init__(self, batches: Iterator[pa.RecordBatch]):
        self._batches = batches
        self._rest: pa.RecordBatch | None = None
        self.row = 0

    def up_to(self, end: int | None) -> Iterator[pa.RecordBatch]:
        """Yields the unread rows before row `end`; None: all unread rows."""
        while end is None or self.row < end:
            batch = next(self._batches, None) if self._rest is None else self._rest
            if batch is None:
                if end is None:
                    return
                raise invalid(f"it has {self.row} rows instead of {end} or more")
            count = batch.num_rows if end is None else min(end - self.row, batch.num_rows)
            self._rest = batch.slice(count) if count < batch.num_rows else None
            self.row += count
            if count:
                yield batch.slice(0, count)

    def check_end(self) -> None:
        """Raises ValueError if rows remain."""
        left = self._rest
        while left is None or left.num_rows == 0:
            left = next(self._batches, None)
            if left is None:
                return
        raise invalid(f"it has more than {self.row} rows")
