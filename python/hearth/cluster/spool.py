"""Rows of a feed kept on the executor's disk, so that later epochs need not be sent again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from hearth.files.local_folders import spill_folder
from hearth.rows.pickles import RowFormat


class Spool:
    """Batches in an unlinked file, in the order they came. One thread writes, then reads."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._batches: list[tuple[int, int, RowFormat]] = []
        self._complete = 0  # those of which the last ends with a row

    def __len__(self) -> int:
        return self._complete

    def add(self, batch: Any, format: RowFormat) -> None:
        """Appends a batch, as pyarrow.record_batch() takes it."""
        import pyarrow as pa

        batch = pa.record_batch(batch)
        if self._file is None:
            folder = spill_folder(os.getpid())  # the nodes of a host use its disks in turn
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (kept open)
        start = self._batches[-1][1] if self._batches else 0
        self._file.seek(start)
        with pa.ipc.new_stream(self._file, batch.schema) as stream:
            stream.write_batch(batch)
        self._batches.append((start, self._file.tell(), format))

    def commit(self) -> None:
        """The last batch ends with a row."""
        self._complete = len(self._batches)

    def rollback(self) -> None:
        """The task died within a row: what comes of it will be sent again."""
        del self._batches[self._complete :]

    def __iter__(self) -> Iterator[tuple[Any, RowFormat]]:
        """(batch, format) of all rows; the batches lie in the file."""
        import pyarrow as pa

        if self._file is None:
            return
        self._file.flush()
        mapped = pa.memory_map(f"/proc/self/fd/{self._file.fileno()}")
        buffer = mapped.read_buffer(os.fstat(self._file.fileno()).st_size)
        for start, end, format in self._batches[: self._complete]:
            with pa.ipc.open_stream(buffer.slice(start, end - start)) as stream:
                yield stream.read_next_batch(), format
