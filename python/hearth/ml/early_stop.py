"""Early stopping by one figure of each epoch, independent of the framework."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hearth.errors import invalid
from hearth.ml.training_spec import TrainingSpec

_GREATER = ("acc", "auc", "f1", "precision", "recall", "r2", "iou", "bleu")


class EarlyStop:
    """The early stopping of one training: tracks the monitored figure. Not thread-safe.

    Attributes:
        state: saved in checkpoints: the best value, its epoch, and the number of epochs since then.
    """

    def __init__(self, monitor: str, patience: int, min_delta: float = 0.0, mode: str = "auto"):
        """`mode`: "min", "max", or "auto", which is "max" for names such as accuracy, otherwise
        "min"."""
        self.monitor, self._patience, self._min_delta = monitor, patience, min_delta
        name = monitor.lower()
        greater = mode == "max" or (mode == "auto" and any(word in name for word in _GREATER))
        self._sign = -1.0 if greater else 1.0
        self.state: dict[str, Any] = {"best": None, "best_epoch": -1, "waited": 0}

    @classmethod
    def of(cls, spec: TrainingSpec) -> EarlyStop:
        """The EarlyStop of a training. By default it monitors the loss on validation rows, if there
        are any, else the training loss."""
        monitor = spec.monitor or ("val_loss" if spec.validates else "loss")
        return cls(monitor, spec.patience, spec.min_delta, spec.monitor_mode)

    def observe(self, row: Mapping[str, Any], epoch: int) -> bool:
        """Adds an epoch's figures; returns whether the epoch is the best so far. Raises ValueError
        if the monitored figure is missing."""
        if self.monitor not in row:
            raise invalid(
                f"monitor is {self.monitor!r}, but an epoch has {', '.join(row)}: use one of "
                "these (val_loss needs validationIndicatorCol or validationFraction)"
            )
        value, best = float(row[self.monitor]), self.state["best"]
        better = not math.isnan(value) and (
            best is None or self._sign * (best - value) > self._min_delta
        )
        if better:
            self.state.update(best=value, best_epoch=epoch, waited=0)
        else:
            self.state["waited"] += 1
        return better

    @property
    def is_over(self) -> bool:
        """Whether the last `patience` epochs brought no improvement."""
        return 0 < self._patience <= self.state["waited"]
