"""Losses and metrics of a PyTorch training, for weighted rows and several outputs."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from hearth.errors import invalid
from hearth.ml.torch_batches import Batch, described


@dataclass(frozen=True)
class BatchLoss:
    """The loss of a minibatch: the weighted mean over its rows, and the sum of their weights.

    `parts`: each output's loss by the label's name, if there are several losses.
    """

    loss: torch.Tensor
    mass: float
    parts: Mapping[str, torch.Tensor]


class Losses:
    """The losses of a training: one loss, which may take several outputs and labels, or one for
    each output."""

    def __init__(self, losses: Any, labels: Sequence[str], factors: Sequence[float]):
        """Raises ValueError if the numbers of losses, labels and weights differ."""
        losses = list(losses) if isinstance(losses, list | tuple) else [losses]
        self._losses = [each() if isinstance(each, type) else each for each in losses]
        self._labels = labels
        several = len(losses) > 1
        if several and len(losses) != len(labels):
            raise invalid(
                f"there are {len(losses)} losses for {len(labels)} label columns "
                f"({', '.join(labels)}): pass one loss for each of labelCols"
            )
        self._factors = list(factors) or [1.0] * len(losses)
        if len(self._factors) != len(losses):
            raise invalid(
                f"lossWeights has {len(factors)} numbers for {len(losses)} losses: set one for each"
            )

    def __call__(self, outputs: Sequence[torch.Tensor], batch: Batch) -> BatchLoss:
        """Raises ValueError for unsupported shapes, or a loss that is not a number."""
        if len(self._losses) == 1:
            loss, mass = self._one(0, list(outputs), batch.labels, batch)
            return BatchLoss(loss * self._factors[0], mass, {})
        if len(outputs) != len(self._losses):
            raise invalid(
                f"the model returned {len(outputs)} outputs for {len(self._losses)} losses: it "
                "must return a tuple with one for each of labelCols"
            )
        parts = {}
        for at, name in enumerate(self._labels):
            parts[name], mass = self._one(at, [outputs[at]], [batch.labels[at]], batch)
        total = sum(f * part for f, part in zip(self._factors, parts.values(), strict=True))
        return BatchLoss(total, mass, parts)  # type: ignore[arg-type]

    def _one(self, at: int, outputs: Any, labels: Any, batch: Batch) -> tuple[torch.Tensor, float]:
        function = self._losses[at]
        if batch.weights is None:
            return _checked(_called(function, outputs, labels)), float(batch.rows)
        rows = _called(_per_row(function), outputs, labels)
        if rows.dim() == 0 or len(rows) != len(batch.weights):
            raise invalid(
                f"with weightCol a loss must return a number for each row, but it returned shape "
                f"{tuple(rows.shape)} for {len(batch.weights)} rows: give the loss a "
                "parameter `reduction`, like those of torch.nn.functional"
            )
        values = rows.reshape(len(rows), -1).mean(1)
        mass = float(batch.weights.sum()) if batch.rows else 0.0
        return (values * batch.weights).sum() / (mass or 1.0), mass


def _called(function: Callable[..., Any], outputs: Any, labels: Any) -> torch.Tensor:
    with warnings.catch_warnings():
        # Raises instead of warning, because PyTorch would broadcast outputs against labels, and
        # train on a meaningless loss.
        warnings.filterwarnings("error", message="Using a target size")
        try:
            return function(*outputs, *labels)
        except (RuntimeError, IndexError, ValueError, UserWarning) as error:
            output_shapes = described(["output"] * len(outputs), outputs)
            raise invalid(
                f"the loss cannot compare {output_shapes} with {described(['label'] * 9, labels)}: "
                f"{_line(error)}"
            ) from error


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _per_row(function: Any) -> Callable[..., Any]:
    """A loss function that returns one loss per row, without the mean, if `function` supports
    that."""
    if isinstance(function, torch.nn.Module) and hasattr(function, "reduction"):
        function = copy.copy(function)
        function.reduction = "none"
        return function
    try:
        takes = "reduction" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        takes = False
    return partial(function, reduction="none") if takes else function


def _checked(loss: Any) -> torch.Tensor:
    if not isinstance(loss, torch.Tensor) or loss.dim():
        shape = tuple(getattr(loss, "shape", ())) or type(loss).__name__
        raise invalid(
            f"the loss has shape {shape}: it must be one number, the mean over the rows of a "
            "minibatch"
        )
    return loss


class Metrics:
    """The metrics of a training, computed in one pass over the rows. A metric is a function of
    outputs and labels that returns the mean over the rows, or an object with update() and
    compute(), such as one of torchmetrics.

    Attributes:
        sums: for each function the sum of its values times the number of rows; rows: number of
            counted rows.
    """

    def __init__(self, metrics: Any, device: Any):
        self._objects, self._functions = {}, {}
        self.sums: dict[str, float] = {}
        self.rows = 0
        for name, metric in named(metrics).items():
            if hasattr(metric, "update") and hasattr(metric, "compute"):
                metric = copy.deepcopy(metric)
                metric.reset()
                self._objects[name] = metric.to(device) if hasattr(metric, "to") else metric
            else:
                self._functions[name] = metric

    def update(self, outputs: Sequence[torch.Tensor], batch: Batch) -> None:
        """Adds a minibatch."""
        if not batch.rows or not (self._objects or self._functions):
            return
        with torch.no_grad():
            found = [output.detach().float() for output in outputs]
            for metric in self._objects.values():
                metric.update(*found, *batch.labels)
            for name, function in self._functions.items():
                value = float(function(*found, *batch.labels))
                self.sums[name] = self.sums.get(name, 0.0) + value * batch.rows
        self.rows += batch.rows

    def values(self) -> dict[str, float]:
        """The metrics of this rank's rows. Metrics of torchmetrics cover the rows of all ranks,
        through a collective call."""
        found = {name: self.sums.get(name, 0.0) / max(1, self.rows) for name in self._functions}
        return found | {name: float(metric.compute()) for name, metric in self._objects.items()}


def named(metrics: Any) -> dict[str, Any]:
    """Metrics by name; a class, or a partial of a class, is called. Raises ValueError for duplicate
    names."""
    if not isinstance(metrics, Mapping):
        names = [_name_of(each) for each in metrics]
        if len(set(names)) < len(names):
            raise invalid(f"two metrics have one name ({', '.join(names)}): pass a dict")
        metrics = dict(zip(names, metrics, strict=True))
    return {name: _made(metric) for name, metric in metrics.items()}


def _made(metric: Any) -> Any:
    inner = metric.func if isinstance(metric, partial) else metric
    return metric() if isinstance(inner, type) else metric


def _name_of(metric: Any) -> str:
    inner = metric.func if isinstance(metric, partial) else metric
    return getattr(inner, "__name__", type(inner).__name__).lower()
