"""Sums sparse tensors over ranks: gathers the rows of each rank and adds them up.

A sparse gradient of an embedding table contains only the rows that a minibatch used. Memory and
traffic are proportional to the number of these rows (the largest number of any rank, times the
number of ranks), not to the size of the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from hearth.errors import invalid

_OPS = ("SUM", "AVG")


class SparseSum:
    """The sum of one sparse COO tensor over `world` ranks. Not thread-safe.

    First the ranks gather `count` into `counts`, then each pair of `exchanged()`; finish() then
    stores the coalesced sum in the tensor. Rows are added in rank order, so the result is bitwise
    equal on all ranks.
    """

    def __init__(self, tensor: Tensor, op: str, world: int):
        """`op`: the name of a ReduceOp. Raises ValueError if it is neither SUM nor AVG."""
        if op not in _OPS:
            raise invalid(
                f'the backend "hearth" reduces sparse tensors by {" and ".join(_OPS)}, not {op}'
            )
        own = tensor.detach().coalesce()
        self._tensor, self._mean, self._world = tensor, op == "AVG", world
        self._sizes = own.shape[: own.sparse_dim()]
        self._keys, self._values = _flat(own.indices(), self._sizes), own.values()
        self.count = torch.tensor([len(self._keys)])
        self.counts = self.count.new_empty(world, 1)
        self._gathered: list[Tensor] = []

    @property
    def signature(self) -> str:
        """Type and shape, which the ranks compare: "sparse(1) float32[1000, 16]"."""
        tensor = self._tensor
        kind, shape = str(tensor.dtype)[6:], list(tensor.shape)
        return f"sparse({tensor.sparse_dim()}) {kind}{shape}"

    def exchanged(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Pairs of (output, input) to gather: keys and values, padded to the longest rank."""
        longest = int(self.counts.max())
        for own in (self._keys, self._values) if longest else ():
            padded = own.new_zeros(longest, *own.shape[1:])
            padded[: len(own)] = own
            whole = own.new_empty(self._world, *padded.shape)
            self._gathered.append(whole)
            yield whole, padded

    def finish(self) -> None:
        """Stores the sum in the tensor."""
        keys, values = self._keys, self._values
        if self._gathered:
            keys, values = self._added(*self._gathered)
        if self._mean:
            exact = values.is_floating_point() or values.is_complex()
            values = torch.div(values, self._world, rounding_mode=None if exact else "trunc")
        indices = torch.stack(torch.unravel_index(keys, self._sizes))
        summed = torch.sparse_coo_tensor(
            indices, values, self._tensor.shape, is_coalesced=True, check_invariants=False
        )
        with torch.no_grad():
            self._tensor.copy_(summed)

    def _added(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The sorted distinct keys of all ranks, and the sum for each key."""
        counts = [int(count) for count in self.counts]
        used = [part[:count] for part, count in zip(keys, counts, strict=True)]
        found, position = torch.unique(torch.cat(used), return_inverse=True)
        total = values.new_zeros(len(found), *values.shape[2:])
        for part, at in zip(values, position.split(counts), strict=True):
            total[at] += part[: len(at)]  # valid because the keys of one rank are unique
        return found, total


def _flat(indices: Tensor, sizes: torch.Size) -> Tensor:
    """One number for each column of `indices`, the inverse of torch.unravel_index()."""
    keys = indices.new_zeros(indices.shape[1])
    for dimension, index in enumerate(indices):
        keys += index * math.prod(sizes[dimension + 1 :])
    return keys
