"""The specification of a training, and the user's code, which are sent to its ranks separately."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hearth.data.options import WEIGHT
from hearth.errors import invalid

NOTHING_HELD = (
    "there are no rows to validate on: validationIndicatorCol is true in none of them, or "
    "validationFraction is too small a share of them"
)


@dataclass(frozen=True)
class TrainingSpec:
    """Columns and Params of a training; see the Params of TorchEstimator and KerasEstimator."""

    inputs: tuple[str, ...]
    labels: tuple[str, ...]
    weight: str = ""
    validates: bool = False
    batch_size: int = 32
    epochs: int = 1
    learning_rate: float | None = None
    seed: int = 0
    shuffle: bool = True
    accumulation: int = 1
    clip_norm: float = 0.0
    clip_value: float = 0.0
    precision: str = "float32"
    device: str = "auto"
    patience: int = 0
    monitor: str = ""
    monitor_mode: str = "auto"
    min_delta: float = 0.0
    restore_best: bool = True
    loss_weights: tuple[float, ...] = ()
    scheduler_interval: str = "epoch"
    model_args: Mapping[str, Any] = field(default_factory=dict)
    optimizer_args: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 0  # for the transformation
    checkpoint_steps: int = 0
    resumes: bool = False  # whether there is a folder for checkpoints
    verbose: bool = False
    backend: str = ""  # Keras' backend

    @property
    def keeps_best(self) -> bool:
        """Whether the weights of the best epoch are stored."""
        return self.patience > 0 and self.restore_best


@dataclass(frozen=True)
class TrainingCode:
    """The user's code; pickled as a whole.

    `objects`: classes that Keras finds by name.
    """

    model: Any
    loss: Any
    optimizer: Any
    metrics: Any = ()
    callbacks: Sequence[Any] = ()
    scheduler: Callable[[Any], Any] | None = None
    transformation: Callable[..., Any] | None = None
    objects: Mapping[str, Any] | None = None


def summary_of(spec: TrainingSpec, run: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of TrainingSummary for a trainer's `run`."""
    best = run["stop"]["best_epoch"] if spec.keeps_best else -1
    early = bool(run["stopped"]) and run["epoch"] < spec.epochs
    return {"history": run["history"], "best_epoch": best, "stopped_early": early}


def not_finite(loss: float, step: int) -> Exception:
    """The error for a loss of NaN or infinity."""
    return invalid(
        f"the loss is {loss} in step {step}, so the weights would become NaN: lower learningRate, "
        "scale the inputs, or look for NaN and infinity in the columns"
    )


def report_epoch(ctx: Any, spec: TrainingSpec, step: int, row: Mapping[str, Any]) -> None:
    """Sends an epoch's figures to the driver's progress line and history. If the training is
    verbose, rank 0 also prints them, and the driver shows that output."""
    ctx.report({key: value for key, value in row.items() if isinstance(value, float)}, step=step)
    if spec.verbose and ctx.share()[0] == 0:
        figures = (f"{key} {row[key]:.4g}" for key in row if key not in ("epoch", "rows"))
        print(f"epoch {row['epoch'] + 1} of {spec.epochs}: {', '.join(figures)}", flush=True)


def loader_map(transformation: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """The transformation as a loader's map that keeps the weight column."""
    if transformation is None:
        return None

    def kept(batch: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
        return {**{name: batch[name] for name in (WEIGHT,) if name in batch}, **found}

    if len(inspect.signature(transformation).parameters) > 1:
        return lambda batch, seeds: kept(batch, transformation(batch, seeds))
    return lambda batch: kept(batch, transformation(batch))
