"""Reads a node's share of the rows of files, in columns: Parquet, Arrow and TFRecord files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hearth.cluster.node.minibatches import Minibatches, fit_together
from hearth.errors import invalid
from hearth.files.library_files import library_knows
from hearth.files.uri import CORE_SCHEMES, local_path, scheme
from hearth.rows.columns import Columns
from hearth.sources.columns import column_pairs
from hearth.sources.owners import joined, shares

if TYPE_CHECKING:
    import pyarrow as pa

    from hearth.cluster.node.split_requests import SplitRequests
    from hearth.sources.file_source import FileSource
    from hearth.sources.source import Split


class FileFeed(Minibatches):
    """A node's share of the rows of files in minibatches; the same interface as DataFeed."""

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
            path: a file or folder of this host (also as a file: URI), or in HDFS.
            columns: names of columns to read; empty: all.
            share: (this node's number, number of nodes).
            epochs: how often each row is delivered.
            mgr: `ctx.mgr` of a running node, to request its share of remote files.

        Raises:
            FileNotFoundError: the path does not exist.
            HearthError: remote files cannot be listed.
            ValueError: an unsupported file system, a column that is not in the files, files of
                several formats, or a table of Delta, Iceberg or Hudi.
        """
        requests = getattr(mgr, "files", None)
        if requests is not None and _is_remote(path):
            batches = _read_remote(requests, path, columns, epochs)
        else:
            batches = _read_local(path, columns, share, epochs)
        super().__init__(BatchSource(batches), mgr)


class BatchSource:
    """The Source of a FileFeed: slices record batches into minibatches, without a copy."""

    def __init__(self, batches: Iterator[pa.RecordBatch]):
        self._batches = batches
        self._chunk: Columns | None = None
        self._at = 0  # next row of the chunk
        self.taken = 0
        self.ended = False

    def take(
        self, count: int, across_partitions: bool = True, arrays: bool = True
    ) -> list[Columns]:
        """Up to `count` rows with the same columns; fewer at the end, which sets `ended`."""
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

    def commit(self, rows: int | None = None) -> None:
        """Does nothing: rows of files need no acknowledgement."""

    def terminate(self) -> None:
        """Ends the source: the remaining rows are dropped."""
        self._batches, self._chunk = iter(()), None


def _is_remote(path: str) -> bool:
    return scheme(path) in CORE_SCHEMES or (local_path(path) is None and library_knows(path))


def _read_remote(
    requests: SplitRequests, uri: str, columns: Sequence[str], epochs: int
) -> Iterator[pa.RecordBatch]:
    """Record batches of the splits that the driver assigns. Requests the splits before the first
    batch is read."""
    source, host = requests.ask(uri)
    source = _selected(source, columns)

    def batches() -> Iterator[pa.RecordBatch]:
        counter = requests.counter()

        def read(split: Split) -> Iterator[pa.RecordBatch]:
            near = bool(split.hosts & host)
            return source.read(split, lambda size: counter.add(size, near))

        try:
            yield from _epochs(read, list(joined(source.splits(), host)), epochs)
        finally:
            with suppress(OSError):  # the cluster may have ended
                counter.flush()

    return batches()


def _read_local(
    path: str, columns: Sequence[str], share: tuple[int, int], epochs: int
) -> Iterator[pa.RecordBatch]:
    """Record batches of a node's share of this host's files."""
    from hearth.sources.named_formats import pin_by_names  # loads pyarrow

    if local_path(path) is None:
        raise invalid(f"{path} is not in a local file system: mount it, or feed it from Spark")
    source = _selected(pin_by_names(path), columns)
    number, nodes = share
    mine = shares(source.splits(), [], nodes)[number : number + 1]  # empty for a parameter server
    return _epochs(source.read, [split for part in mine for split in joined(part)], epochs)


def _selected(source: FileSource, columns: Sequence[str]) -> FileSource:
    """The source with only these columns. Raises ValueError for an unknown one."""
    return source.select(column_pairs(columns, source.schema().names)) if columns else source


def _epochs(
    read: Callable[[Split], Iterator[pa.RecordBatch]], splits: Sequence[Split], epochs: int
) -> Iterator[pa.RecordBatch]:
    for _ in range(epochs):
        for split in splits:
            yield from read(split)
