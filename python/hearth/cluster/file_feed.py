"""Rows that a node reads from files by itself, by columns: Parquet, Arrow and TFRecord files."""

from __future__ import annotations

import itertools
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hearth.cluster.data_feed import DataFeed, fit_together
from hearth.files.library_files import library_knows
from hearth.files.table_folders import refuse_table
from hearth.files.uri import CORE_SCHEMES, local_path, scheme
from hearth.rows.columns import Columns, ColumnsBefore
from hearth.rows.far_reader import ARROW_SUFFIXES, read_parts
from hearth.rows.file_reader import row_range

if TYPE_CHECKING:
    import pyarrow as pa

    from hearth.cluster.file_shares import FileShares

_BATCH_ROWS = 4096
# With MAP_NORESERVE, which Python 3.11 does not name: files may be larger than the memory.
_PRIVATE = mmap.MAP_PRIVATE | 0x4000
_RECORD_ROWS = 4096  # or fewer: read() bounds the bytes


class FileFeed(DataFeed):
    """A node's share of the rows of files, as minibatches: used like the feed from Spark."""

    def __init__(
        self,
        path: str,
        columns: Sequence[str],
        share: tuple[int, int],
        epochs: int,
        mgr: Any = None,
    ):
        """Opens the files.

        Args:
            path: a file or folder of this host, perhaps as a file: URI, or of HDFS.
            columns: which to read; none: all.
            share: (this node's number, number of nodes).
            epochs: how often each row is given.
            mgr: `ctx.mgr` of a running node, which asks the driver for its share of remote files.

        Raises:
            FileNotFoundError: nothing is there.
            HearthError: files elsewhere cannot be listed.
            ValueError: another file system, a column that the files do not have, or a table of
                Delta, Iceberg or Hudi.
        """
        self.mgr, self.train_mode = mgr, True
        self.queue_in = self.queue_out = None
        self.input_tensors = self._columns = None
        self.done_feeding = False
        self._columns_before = ColumnsBefore()
        shares = getattr(mgr, "files", None)
        if shares is not None and _is_far(path):
            self._source = BatchSource(_read_far(shares, path, columns, epochs))
            return
        first = read_batches(path, columns, share)
        others = (batch for _ in range(1, epochs) for batch in read_batches(path, columns, share))
        self._source = BatchSource(itertools.chain(first, others))

    def terminate(self) -> None:
        """Ends the feed."""
        self._source.terminate()
        self.done_feeding = True


def _is_far(path: str) -> bool:
    return scheme(path) in CORE_SCHEMES or (local_path(path) is None and library_knows(path))


class BatchSource:
    """Cuts record batches into minibatches, without a copy; what DataFeed asks of its source."""

    def __init__(self, batches: Iterator[pa.RecordBatch]):
        self._batches = batches
        self._chunk: Columns | None = None
        self._at = 0  # the chunk's next row
        self.taken = 0
        self.ended = False

    def take(self, count: int, across_partitions: bool, arrays: bool = True) -> list[Columns]:
        """Up to `count` rows of the same columns; fewer at the end, which is known as soon as it is
        reached."""
        slices: list[Columns] = []
        while count > 0:
            if self._chunk is None or self._at == len(self._chunk):
                batch = next(self._batches, None)
                if batch is None:
                    self.ended = True
                    break
                self._chunk, self._at = Columns(batch), 0
            if slices and not fit_together(slices[-1], self._chunk):
                break
            part = self._chunk.slice(self._at, count)
            slices.append(part)
            self._at += len(part)
            self.taken += len(part)
            count -= len(part)
        return slices

    def put_results(self, results: list[Any]) -> None:
        raise ValueError("the rows are from files, so there is nobody to take results")

    def commit(self, rows: int | None = None) -> None:
        """The files stay where they are: the driver learns of the checkpoint alone."""

    def terminate(self) -> None:
        self._batches, self._chunk = iter(()), None


def _read_far(
    shares: FileShares, uri: str, columns: Sequence[str], epochs: int
) -> Iterator[pa.RecordBatch]:
    """Record batches of the share that the driver gives, asked for at once."""
    parts, first = shares.ask(uri)

    def batches() -> Iterator[pa.RecordBatch]:
        counter = shares.counter()
        try:
            for _ in range(epochs):
                yield from read_parts(parts, first, columns, counter.add)
        finally:
            with suppress(OSError):  # the cluster may be over
                counter.tell()

    return batches()


def read_batches(
    path: str, columns: Sequence[str], share: tuple[int, int]
) -> Iterator[pa.RecordBatch]:
    """Record batches of a node's share: a range of rows, or whole files of TFRecords.

    Raises: as FileFeed.
    """
    files = list_files(path)
    suffix = os.path.splitext(files[0])[1]
    if suffix == ".parquet":
        from hearth.rows.file_reader import read_rows

        return read_rows(path, columns, *share, _BATCH_ROWS)
    if suffix in ARROW_SUFFIXES:
        return _read_arrow(files, columns, share)
    return _read_records(files, columns, share)


def list_files(path: str) -> list[str]:
    """The files of a local folder that are not hidden, by name; or the one file.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: another file system, or a table of Delta, Iceberg or Hudi.
    """
    where = local_path(path)
    if where is None:
        raise ValueError(f"{path} is not in a local file system: mount it, or feed it from Spark")
    refuse_table(where)
    if os.path.isfile(where):
        return [where]
    found = sorted(Path(where).iterdir()) if os.path.isdir(where) else []
    files = [str(f) for f in found if f.is_file() and not f.name.startswith(("_", "."))]
    if not files:
        raise FileNotFoundError(f"there are no files in {where}")
    return files


def _read_arrow(
    files: Sequence[str], columns: Sequence[str], share: tuple[int, int]
) -> Iterator[pa.RecordBatch]:
    """Batches that lie in the mapped files, whose pages are copied where they are written to."""
    import pyarrow as pa

    readers = [pa.ipc.open_file(_mapped(file)) for file in files]
    batches = [reader.get_batch(i) for reader in readers for i in range(reader.num_record_batches)]
    begin, end = row_range(sum(batch.num_rows for batch in batches), *share)
    first = 0
    for batch in batches:
        low, high = max(begin - first, 0), min(end - first, batch.num_rows)
        first += batch.num_rows
        if low < high:
            part = batch.slice(low, high - low)
            yield part.select(list(columns)) if columns else part


def _mapped(path: str) -> pa.Buffer:
    import pyarrow as pa

    with open(path, "rb") as file:
        access = mmap.PROT_READ | mmap.PROT_WRITE
        return pa.py_buffer(mmap.mmap(file.fileno(), 0, _PRIVATE, access))


def _read_records(
    files: Sequence[str], columns: Sequence[str], share: tuple[int, int]
) -> Iterator[pa.RecordBatch]:
    """Every n-th file, from this node's on."""
    from pyspark.sql.types import StructType

    from hearth.files.tfrecord_files import open_records, schema_of
    from hearth.files.tfrecord_schema import arrow_columns, feature_kind

    schema = schema_of(files)
    if columns:
        schema = StructType([schema[name] for name in columns])
    wanted = [(field.name, feature_kind(field.dataType)) for field in schema.fields]
    for file in files[share[0] :: share[1]]:
        reader = open_records(file)
        while (found := reader.read(wanted, _RECORD_ROWS)) is not None:
            yield arrow_columns(schema, *found)
