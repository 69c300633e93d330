"""Minibatches of a training as a PyTorch module takes them: on its device, in its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hearth.data.options import WEIGHT
from hearth.rows.dense_arrays import byte_rows


@dataclass(frozen=True)
class Batch:
    """A minibatch on the device. `rows`: those that count; 0 where all are repetitions, which are
    then trained on without any weight. `weights`: of the rows, where a column gives them."""

    inputs: list[torch.Tensor]
    labels: list[torch.Tensor]
    weights: torch.Tensor | None
    rows: int


class Placer:
    """Makes batches of what a loader with uneven="weight" gives. Used by one thread."""

    def __init__(
        self, inputs: Sequence[str], labels: Sequence[str], weight: str, device: Any, kind: Any
    ):
        self._inputs, self._labels, self._weight = inputs, labels, weight
        self._device, self._kind = device, kind

    def __call__(self, batch: Mapping[str, Any]) -> Batch:
        """Raises ValueError for columns that make no tensors, or that the type cannot hold."""
        counts = batch.get(WEIGHT)
        kept = None if counts is None or bool((counts > 0).all()) else counts > 0
        rows = len(next(iter(batch.values()))) if kept is None else int(kept.sum())
        kept = kept if rows else None
        inputs = [self._placed(batch, name, kept) for name in self._inputs]
        labels = [self._placed(batch, name, kept) for name in self._labels]
        weights = self._placed(batch, self._weight, kept) if self._weight else None
        if weights is not None and bool((weights < 0).any() or not weights.isfinite().all()):
            raise ValueError(
                f"the column {self._weight!r} has the weight {weights.min().item()}: weights of "
                "rows must be numbers of at least 0"
            )
        return Batch(inputs, labels, weights, rows)

    def _placed(self, batch: Mapping[str, Any], name: str, kept: Any) -> torch.Tensor:
        if name not in batch:
            raise ValueError(
                f"a minibatch has no {name!r}, but {', '.join(batch)}: the transformation must "
                "keep the columns that are read"
            )
        tensor = as_tensor(batch[name], name)
        tensor = tensor if kept is None else tensor[kept]
        return placed(tensor, self._device, self._kind, name)


def as_tensor(values: Any, name: str) -> torch.Tensor:
    """A tensor of a column: bytes of one length as uint8 [rows, length]. Raises ValueError."""
    if isinstance(values, torch.Tensor):
        return values
    return torch.from_numpy(byte_rows(values, name))


def float_kind(model: Any) -> Any:
    """The type of the model's weights, which columns of floating point get, too."""
    kinds = (value.dtype for value in model.parameters() if value.is_floating_point())
    return next(kinds, torch.float32)


def placed(tensor: torch.Tensor, device: Any, kind: Any, name: str) -> torch.Tensor:
    """On the device, floats in the type `kind`. Raises ValueError where it cannot hold one."""
    if not tensor.is_floating_point() or tensor.dtype == kind:
        return tensor.to(device)
    found = tensor.to(device, kind)
    lost = found.isinf().to(tensor.device) & tensor.isfinite()
    if lost.any():
        dtype = str(kind).removeprefix("torch.")
        raise ValueError(
            f"the column {name!r} has the value {tensor[lost][0].item()}, which "
            f"{dtype} cannot hold ({int(lost.sum())} of {lost.numel()} values of a minibatch): "
            "scale the column"
        )
    return found


def outputs_of(found: Any, rows: int) -> list[torch.Tensor]:
    """A model's outputs, of which it may give several in a tuple or list.

    Raises:
        ValueError: one is no tensor, or its first dimension is not the rows.
    """
    outputs = list(found) if isinstance(found, tuple | list) else [found]
    for output in outputs:
        if not isinstance(output, torch.Tensor):
            raise ValueError(
                f"the model gives a {type(output).__name__}: it must give one tensor, whose first "
                "dimension is the rows, or a tuple of such tensors"
            )
        if output.dim() == 0 or len(output) != rows:
            raise ValueError(
                f"the model gives shape {tuple(output.shape)} for {rows} rows: its first dimension "
                "must be the rows"
            )
    return outputs


def described(names: Sequence[str], tensors: Sequence[torch.Tensor]) -> str:
    """Names, shapes and types, for a message."""
    parts = (
        f"{name} {list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
        for name, tensor in zip(names, tensors, strict=False)
    )
    return ", ".join(parts)
