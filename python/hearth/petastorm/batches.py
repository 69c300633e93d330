"""Minibatches of a shard of pinned files. In an epoch, each row is in exactly one shard."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hearth.data.prefetch import prefetched
from hearth.data.streamed import StreamReader
from hearth.errors import invalid
from hearth.sources.owners import shares

if TYPE_CHECKING:
    from hearth.petastorm.transform import TransformSpec
    from hearth.sources.file_source import FileSource


@dataclass(frozen=True)
class BatchOptions:
    """Options of a shard's batches; see SparkDatasetConverter.make_torch_dataloader()."""

    batch_size: int = 32
    num_epochs: int | None = None
    workers: int = 4
    cur_shard: int = 0
    shard_count: int = 1
    transform: TransformSpec | None = None
    shuffle: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise invalid(f"batch_size is {self.batch_size}: it must be at least 1")
        if self.num_epochs is not None and self.num_epochs < 1:
            raise invalid(f"num_epochs is {self.num_epochs}: it must be at least 1, or None")
        if not 0 <= self.cur_shard < self.shard_count:
            raise invalid(
                f"cur_shard is {self.cur_shard} and shard_count {self.shard_count}: cur_shard must "
                "be at least 0 and less than shard_count"
            )


class ShardBatches:
    """The minibatches {column: array or list} of one shard. A minibatch may span epochs; only the
    last one may be smaller. Each iteration continues with the next epoch. Not thread-safe.
    """

    def __init__(self, source: FileSource, options: BatchOptions):
        """Raises ValueError if the shard has no rows and num_epochs is unlimited."""
        own = shares(source.splits(), (), options.shard_count)[options.cur_shard]
        self._source, self._options = source.only(own), options
        self._epoch = 0
        self.rows = sum(split.rows or 0 for split in own)
        if not self.rows and options.num_epochs is None:
            raise invalid(
                f"shard {options.cur_shard} of {options.shard_count} has no row of {source.uri}: "
                "use fewer shards, or set num_epochs"
            )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        options = self._options
        begin = self._epoch
        self._epoch += options.num_epochs or 0
        parts = self._parts(begin)
        futures = prefetched(parts, self._finish, options.workers, 2 * options.workers)
        batches = (future.result() for future in futures)
        return batches if options.transform is None else _cut_again(batches, options.batch_size)

    def _parts(self, begin: int) -> Iterator[list[Any]]:
        """The rows of each minibatch, in parts because they may come from several epochs."""
        options = self._options
        if not self.rows:
            return
        mode = "window" if options.shuffle else "none"
        reader = StreamReader(self._source, range(len(self._source.splits())), options.seed, mode)
        epochs = itertools.count(begin)
        parts: list[Any] = []
        need = options.batch_size
        for epoch in itertools.islice(epochs, options.num_epochs):
            reader.start(epoch)
            at = 0
            while at < self.rows:
                part = reader.take(at, need)
                parts.append(part)
                at, need = at + part.count, need - part.count
                if need == 0:
                    yield parts
                    parts, need = [], options.batch_size
        if parts:
            yield parts

    def _finish(self, parts: list[Any]) -> dict[str, Any]:
        names = self._source.schema().names
        columns = {name: _joined([part.gather(name) for part in parts]) for name in names}
        transform = self._options.transform
        return columns if transform is None else transform.apply(columns)


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    lists = any(isinstance(part, list) for part in parts)
    return list(itertools.chain(*parts)) if lists else np.concatenate(parts)


def _cut_again(batches: Iterator[dict[str, Any]], size: int) -> Iterator[dict[str, Any]]:
    """Rebatches rows to minibatches of `size`, because a transform may drop or add rows."""
    rest: dict[str, Any] = {}
    for batch in batches:
        if _rows(batch):
            rest = {n: _joined([rest[n], v]) for n, v in batch.items()} if rest else batch
        while _rows(rest) >= size:
            yield {name: values[:size] for name, values in rest.items()}
            rest = {name: values[size:] for name, values in rest.items()}
    if _rows(rest):
        yield rest


def _rows(batch: dict[str, Any]) -> int:
    return len(next(iter(batch.values()), ()))
