"""A dataset's rows as minibatches of tensors, returned by ctx.dataset() in PyTorch programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch.utils.data import IterableDataset

from hearth.data.batch_maker import BatchTypes
from hearth.data.dataset import Dataset
from hearth.data.loader import Loader
from hearth.data.options import LoaderOptions
from hearth.torch.datasets import as_tensor
from hearth.torch.sharding import check_batches_are_kept, check_whole

_IN_WORKER = (
    "the rows of a dataset are in the node's process, and the worker processes of a DataLoader "
    "cannot read them: use the loader itself, or DataLoader(loader, batch_size=None, "
    "num_workers=0); map=, workers= and map_in='processes' of ctx.dataset() prepare batches"
)


class TensorLoader(Loader, IterableDataset):  # type: ignore[type-arg]
    """A loader like hearth.data.loader.Loader, but with tensors that share the arrays' memory.

    Also an IterableDataset of batches, for DataLoader(loader, batch_size=None).
    """

    _WRONG_PROCESS = _IN_WORKER

    def __init__(
        self,
        dataset: Dataset,
        options: LoaderOptions,
        pin_memory: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
    ):
        """`pin_memory`, `collate_fn`: as for torch.utils.data.DataLoader."""
        pin = pin_memory and torch.cuda.is_available()
        convert = partial(_tensor, options.transforms)
        types = BatchTypes(convert, _pinned) if pin else BatchTypes(convert)
        super().__init__(dataset, options, types, collate_fn and partial(_collated, collate_fn))

    @property
    def dataset(self) -> Any:
        """len(loader.dataset) is the number of rows, as for a DataLoader."""
        return _Sized(self)

    @property
    def sampler(self) -> TensorLoader:
        """This loader, because Lightning calls sampler.set_epoch() before each epoch."""
        return self

    def __iter__(self) -> Iterator[Any]:
        """Raises RuntimeError in a worker process, or if Accelerate would drop batches, or if a
        DataLoader would stack the batches."""
        check_whole()
        check_batches_are_kept(sys._getframe(1))
        return super().__iter__()


class _Sized:
    """The number of rows of a loader's dataset over all ranks."""

    def __init__(self, loader: TensorLoader):
        self._loader = loader

    def __len__(self) -> int:
        return sum(self._loader._steps.rows_of_ranks())


def _tensor(transforms: Mapping[str, Any], value: Any, name: str) -> Any:
    if isinstance(value, list):
        return value
    tensor = as_tensor(value, name)
    if name in transforms and transforms[name].to == "bfloat16":  # NumPy lacks this type
        tensor = tensor.view(torch.bfloat16)
    return tensor


def _collated(collate_fn: Callable[[list[Any]], Any], batch: Any) -> Any:
    return collate_fn(_rows(batch))


def _pinned(batch: Any) -> Any:
    """The batch with its tensors in page-locked memory, as a DataLoader does."""
    if type(batch) is dict:
        return {key: _pinned(value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(_pinned, batch))
    if type(batch) in (list, tuple):
        return type(batch)(map(_pinned, batch))
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch


def _rows(batch: Any) -> list[Any]:
    """The rows of a batch, as a collate_fn expects them."""
    if isinstance(batch, tuple):
        return list(zip(*batch, strict=True))
    return [dict(zip(batch, row, strict=True)) for row in zip(*batch.values(), strict=True)]
