"""The ranks of a Keras training, which average their gradients, on TensorFlow or PyTorch."""

from __future__ import annotations

from types import MethodType
from typing import Any, Protocol

import numpy as np

from hearth.errors import invalid


class KerasRanks(Protocol):
    """One process among the ranks. Methods are collective calls, which only one thread may make."""

    rank: int
    size: int

    def join(self, optimizer: Any) -> None:
        """Makes an optimizer apply the mean of the ranks' gradients."""

    def total(self, values: list[float]) -> list[float]:
        """The sum of each value over the ranks, bitwise equal on all ranks."""

    def share(self, data: bytes) -> bytes:
        """Returns rank 0's bytes on all ranks."""


class Alone(KerasRanks):
    """The only rank of a training on one node."""

    rank, size = 0, 1

    def join(self, optimizer: Any) -> None:
        """Does nothing: there are no other ranks."""

    def total(self, values: list[float]) -> list[float]:
        return values

    def share(self, data: bytes) -> bytes:
        return data


class TensorFlowRanks(KerasRanks):
    """A node of a cluster as a rank, connected to the others by hearth.tensorflow."""

    def __init__(self) -> None:
        import hearth.tensorflow as hvt

        hvt.init()
        self.rank, self.size, self._hvt = hvt.rank(), hvt.size(), hvt

    def join(self, optimizer: Any) -> None:
        self._hvt.DistributedOptimizer(optimizer)

    def total(self, values: list[float]) -> list[float]:
        found = self._hvt.allreduce(np.array(values, np.float64), "sum", name="figures")
        return [float(value) for value in found.numpy()]

    def share(self, data: bytes) -> bytes:
        [size] = self.total([float(len(data)) if self.rank == 0 else 0.0])
        own = data if self.rank == 0 else bytes(int(size))
        found = self._hvt.broadcast(np.frombuffer(own, np.uint8), name="checkpoint")
        return bytes(found.numpy())


class TorchRanks(KerasRanks):
    """A node of a TorchCluster as a rank, connected to the others by torch.distributed."""

    def __init__(self, ctx: Any):
        import torch.distributed as dist

        dist.init_process_group(ctx.backend)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def join(self, optimizer: Any) -> None:
        own = type(optimizer).apply

        def apply(this: Any, grads: Any, trainable_variables: Any = None) -> Any:
            return own(this, _means(list(grads), self.size), trainable_variables)

        # Changes only this object, so that Keras saves it as its original class.
        object.__setattr__(optimizer, "apply", MethodType(apply, optimizer))

    def total(self, values: list[float]) -> list[float]:
        import torch
        import torch.distributed as dist

        total = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(total)
        found: list[float] = total.tolist()
        return found

    def share(self, data: bytes) -> bytes:
        import torch
        import torch.distributed as dist

        [size] = self.total([float(len(data)) if self.rank == 0 else 0.0])
        own = bytearray(data) if self.rank == 0 else bytearray(int(size))
        tensor = torch.frombuffer(own, dtype=torch.uint8) if own else torch.empty(0)
        if own:
            dist.broadcast(tensor, 0)
        return bytes(own)


def _means(gradients: list[Any], size: int) -> list[Any]:
    """The means of all gradients over the ranks, with one all-reduce per type."""
    import torch
    import torch.distributed as dist

    found = list(gradients)
    for kind in sorted({g.dtype for g in gradients if g is not None}, key=str):
        indices = [i for i, g in enumerate(gradients) if g is not None and g.dtype == kind]
        flat = torch.cat([gradients[i].detach().reshape(-1) for i in indices])
        dist.all_reduce(flat)
        flat /= size
        parts = flat.split([gradients[i].numel() for i in indices])
        for i, part in zip(indices, parts, strict=True):
            found[i] = part.view_as(gradients[i])
    return found


def ranks_of(backend: str, ctx: Any) -> KerasRanks:
    """The ranks of a node. Raises ValueError for a backend that does not support them."""
    if ctx.num_workers == 1:
        return Alone()
    if backend == "tensorflow":
        return TensorFlowRanks()
    if backend == "torch":
        return TorchRanks(ctx)
    raise invalid(
        f"Keras on {backend!r} trains on one worker only: set workers=1, or backend to "
        "'tensorflow' or 'torch'"
    )
