"""A feed as a torch IterableDataset: minibatches of arrays become tensors without copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from hearth.errors import invalid
from hearth.torch.sharding import check_whole

_IN_WORKER = (
    "the rows of a feed arrive in the node's process, which a DataLoader's workers cannot read: "
    "use DataLoader(dataset, batch_size=None, num_workers=0)"
)


class FeedDataset(IterableDataset):  # type: ignore[type-arg]
    """The IterableDataset returned by as_iterable_dataset(). Only one thread may iterate over
    it."""

    def __init__(
        self, feed: Any, batch_size: int, columns: Sequence[str] | None, ragged: Sequence[str] = ()
    ):
        self.feed = feed
        self._batch_size = batch_size
        self._columns = None if columns is None else tuple(columns)
        self._ragged = tuple(ragged)

    def __iter__(self) -> Iterator[Any]:
        if get_worker_info() is not None:
            raise invalid(_IN_WORKER)
        check_whole()  # on all ranks, before any rank takes rows
        return self._minibatches()

    def _minibatches(self) -> Iterator[Any]:
        while not self.feed.should_stop():
            batch = self.feed.next_numpy(self._batch_size, self._columns, self._ragged)
            if batch is not None:
                yield as_tensors(batch, self._columns)

    def __reduce__(self) -> Any:
        raise invalid(_IN_WORKER)


def as_tensors(batch: Any, columns: Sequence[str] | None = None) -> Any:
    """The output of next_numpy() as tensors; with `columns` a tuple of their tensors.

    Raises:
        ValueError: tensors do not support a column's type.
    """
    if isinstance(batch, dict):
        tensors = {name: as_tensor(array, name) for name, array in batch.items()}
        return tensors if columns is None else tuple(tensors[name] for name in columns)
    if isinstance(batch, tuple):
        return tuple(as_tensor(a, f"{i}") for i, a in enumerate(batch))
    return as_tensor(batch, "0")


def as_tensor(array: np.ndarray, name: str) -> Any:
    """A column as a tensor, which shares the column's memory if the memory is writable. A column of
    strings, bytes or other objects becomes a list, in which arrays become tensors."""
    if array.dtype == object:
        return [as_tensor(v, name) if isinstance(v, np.ndarray) else v for v in array]
    try:
        return torch.from_numpy(array if array.flags.writeable else array.copy())
    except TypeError:
        raise invalid(
            f"column {name!r} has the type {array.dtype}, which tensors lack: cast it in Spark "
            "(a date or time to long, a decimal to double)"
        ) from None
