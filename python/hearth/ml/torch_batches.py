"""Converts minibatches for a PyTorch module, to its device and type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hearth.data.options import WEIGHT
from hearth.errors import invalid
from hearth.rows.dense_arrays import byte_rows


@dataclass(frozen=True)
class Batch:
    """A minibatch on the device. `rows`: number of rows that count; 0 if all rows are repeated
    ones, which have no weight. `weights`: the rows' weights, from the weight column."""

    inputs: list[torch.Tensor]
    labels: list[torch.Tensor]
    weights: torch.Tensor | None
    rows: int


class BatchConverter:
    """A converter of batches from a loader with uneven="weight". Not thread-safe."""

    def __init__(
        self, inputs: Sequence[str], labels: Sequence[str], weight: str, device: Any, kind: Any
    ):
        self._inputs, self._labels, self._weight = inputs, labels, weight
        self._device, self._kind = device, kind

    def __call__(self, batch: Mapping[str, Any]) -> Batch:
        """Raises ValueError for columns that do not fit into tensors, or into the module's type."""
        counts = batch.get(WEIGHT)
        valid = None if counts is None or bool((counts > 0).all()) else counts > 0
        rows = len(next(iter(batch.values()))) if valid is None else int(valid.sum())
        valid = valid if rows else None
        inputs = [self._to_device(batch, name, valid) for name in self._inputs]
        labels = [self._to_device(batch, name, valid) for name in self._labels]
        weights = self._to_device(batch, self._weight, valid) if self._weight else None
        if weights is not None and bool((weights < 0).any() or not weights.isfinite().all()):
            raise invalid(
                f"the column {self._weight!r} has the weight {weights.min().item()}: weights of "
                "rows must be numbers of at least 0"
            )
        return Batch(inputs, labels, weights, rows)

    def _to_device(self, batch: Mapping[str, Any], name: str, valid: Any) -> torch.Tensor:
        if name not in batch:
            raise invalid(
                f"a minibatch has no {name!r}, only {', '.join(batch)}: the transformation must "
                "keep the columns that are read"
            )
        tensor = as_tensor(batch[name], name)
        tensor = tensor if valid is None else tensor[valid]
        return to_device(tensor, self._device, self._kind, name)


def as_tensor(values: Any, name: str) -> torch.Tensor:
    """A column as a tensor; bytes of one length become uint8 [rows, length]. Raises ValueError for
    values that do not fit."""
    if isinstance(values, torch.Tensor):
        return values
    return torch.from_numpy(byte_rows(values, name))


def float_kind(model: Any) -> Any:
    """The type of the model's weights, which is also used for floating-point columns."""
    kinds = (value.dtype for value in model.parameters() if value.is_floating_point())
    return next(kinds, torch.float32)


def to_device(tensor: torch.Tensor, device: Any, kind: Any, name: str) -> torch.Tensor:
    """Moves a tensor to the device, and converts floats to `kind`. Raises ValueError if a value
    does not fit."""
    if not tensor.is_floating_point() or tensor.dtype == kind:
        return tensor.to(device)
    found = tensor.to(device, kind)
    too_large = found.isinf().to(tensor.device) & tensor.isfinite()
    if too_large.any():
        raise invalid(
            f"the column {name!r} has the value {tensor[too_large][0].item()}, which the model's "
            f"{kind} cannot hold ({int(too_large.sum())} of {too_large.numel()} values): "
            "scale the column"
        )
    return found


def outputs_of(found: Any, rows: int) -> list[torch.Tensor]:
    """A model's outputs, possibly several in a tuple or list.

    Raises:
        ValueError: an output is not a tensor, or its first dimension is not the rows.
    """
    outputs = list(found) if isinstance(found, tuple | list) else [found]
    for output in outputs:
        if not isinstance(output, torch.Tensor):
            raise invalid(
                f"the model returned a {type(output).__name__}: it must return one tensor, whose "
                "first dimension is the rows, or a tuple of such tensors"
            )
        if output.dim() == 0 or len(output) != rows:
            raise invalid(
                f"the model returned shape {tuple(output.shape)} for {rows} rows: its first "
                "dimension must be the rows"
            )
    return outputs


def described(names: Sequence[str], tensors: Sequence[torch.Tensor]) -> str:
    """Names, shapes and types, for a message."""
    parts = (
        f"{name} {list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
        for name, tensor in zip(names, tensors, strict=False)
    )
    return ", ".join(parts)
