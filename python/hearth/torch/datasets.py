"""A feed as a torch IterableDataset: minibatches of arrays become tensors, without a copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from hearth.torch.sharding import check_whole

_IN_WORKER = (
    "the rows of a feed come to the node's own process, which a DataLoader's workers cannot read: "
    "use DataLoader(dataset, batch_size=None, num_workers=0)"
)


class FeedDataset(IterableDataset):
    """As as_iterable_dataset() says. One thread iterates it."""

    def __init__(self, feed: Any, batch_size: int, columns: Sequence[str] | None, writable: bool):
        self.feed = feed
        self._batch_size = batch_size
        self._columns = None if columns is None else tuple(columns)
        self._writable = writable

    def __iter__(self) -> Iterator[Any]:
        if get_worker_info() is not None:
            raise RuntimeError(_IN_WORKER)
        check_whole()  # on all ranks, where one of them alone would take rows
        return self._minibatches()

    def _minibatches(self) -> Iterator[Any]:
        while not self.feed.should_stop():
            batch = self.feed.next_numpy(self._batch_size)
            if batch is not None:
                yield as_tensors(batch, self._columns, self._writable)

    def __reduce__(self) -> Any:
        raise RuntimeError(_IN_WORKER)


def as_tensors(batch: Any, columns: Sequence[str] | None = None, writable: bool = False) -> Any:
    """What next_numpy() gave, as tensors. Raises ValueError as as_iterable_dataset() says."""
    if isinstance(batch, dict):
        if columns is None:
            return {name: as_tensor(array, name, writable) for name, array in batch.items()}
        if missing := [name for name in columns if name not in batch]:
            raise ValueError(
                f"the rows have no column {missing[0]!r}: they have {', '.join(batch)}"
            )
        return tuple(as_tensor(batch[name], name, writable) for name in columns)
    if columns is not None:
        raise ValueError("rows of an RDD have no columns: leave out `columns`, or feed a DataFrame")
    if isinstance(batch, tuple):
        return tuple(as_tensor(a, f"{i}", writable) for i, a in enumerate(batch))
    return as_tensor(batch, "0", writable)


def as_tensor(array: np.ndarray, name: str, writable: bool) -> Any:
    """A tensor of a column; a list where its values are strings, bytes or other objects."""
    if array.dtype == object:
        if not isinstance(array[0], np.ndarray | list | tuple):
            return array.tolist()
        array = _stacked(array, name)
    if array.dtype.kind in "SU":
        return array.tolist()
    if not array.flags.writeable:
        array = array.copy() if writable else np.asarray(_AsIfWritable(array))
    try:
        return torch.from_numpy(array)
    except TypeError:
        raise ValueError(
            f"column {name!r} has the type {array.dtype}, which no tensor has: cast it in Spark "
            "(a date or time to long, a decimal to double)"
        ) from None


def _stacked(array: np.ndarray, name: str) -> np.ndarray:
    shapes = {np.shape(value) for value in array}
    if len(shapes) > 1 or any(value is None for value in array):
        raise ValueError(
            f"column {name!r} has lists of different lengths ({sorted(shapes)[:4]}), which make no "
            "tensor: pad them in Spark, or take the rows by next_numpy()"
        )
    return np.stack([np.asarray(value) for value in array])


class _AsIfWritable:
    """Says of an array that it may be written to, for PyTorch warns of any other."""

    def __init__(self, array: np.ndarray):
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        self._array = array
