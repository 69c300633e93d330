"""The epochs of one rank of a Keras training. Independent of Spark; loads Keras."""

from __future__ import annotations

import io
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import keras
import numpy as np

from hearth.data.keras import KerasDataset
from hearth.data.options import WEIGHT
from hearth.errors import invalid
from hearth.ml.early_stop import EarlyStop
from hearth.ml.keras_ranks import KerasRanks
from hearth.ml.training_spec import NOTHING_HELD, TrainingCode, TrainingSpec, not_finite
from hearth.rows.dense_arrays import byte_rows
from hearth.tensorflow.optimizer_methods import innermost

_POLICIES = {"bf16": "mixed_bfloat16", "fp16": "mixed_float16"}


class KerasTrainer:
    """A trainer of one rank, which trains a model with fit() on this rank's minibatches. Not
    thread-safe.

    Attributes:
        model: the compiled model; run: state that checkpoints contain in addition to the weights.
    """

    def __init__(self, code: TrainingCode, spec: TrainingSpec, ranks: KerasRanks):
        self.code, self.spec, self.ranks = code, spec, ranks
        keras.utils.set_random_seed(spec.seed)
        if spec.precision in _POLICIES:
            keras.mixed_precision.set_dtype_policy(_POLICIES[spec.precision])
        model = code.model
        self.model = model if isinstance(model, keras.Model) else model(**spec.model_args)
        if not isinstance(self.model, keras.Model):
            raise invalid(
                f"KerasEstimator's model returns a {type(self.model).__name__}: it must return a "
                "keras.Model"
            )
        if code.loss is not None or not self.model.compiled:
            self._compile()
        else:
            self._check_compiled()
        if spec.precision == "fp16" and ranks.size > 1 and keras.backend.backend() == "torch":
            raise invalid(
                "precision is 'fp16', which Keras on PyTorch supports on one worker only, as each "
                "would scale its loss separately: use 'bf16', or backend='tensorflow'"
            )
        ranks.join(innermost(self.model.optimizer))
        self.early = EarlyStop.of(spec)
        self.run: dict[str, Any] = {
            "epoch": 0, "step": 0, "history": [], "stopped": False, "stop": self.early.state
        }  # fmt: skip
        self.best: list[np.ndarray] | None = None
        self._sample: Any = None

    def _compile(self) -> None:
        spec, metrics = self.spec, list(self.code.metrics)
        if self.code.loss is None or self.code.optimizer is None:
            raise invalid("KerasEstimator needs loss and optimizer, or a compiled model")
        self.model.compile(
            optimizer=_optimizer(self.code.optimizer, spec),
            loss=self.code.loss,
            loss_weights=list(spec.loss_weights) or None,
            metrics=None if spec.weight else metrics,
            weighted_metrics=metrics if spec.weight else None,
        )

    def _check_compiled(self) -> None:
        """Sets the learning rate of a compiled model. Raises ValueError for Params that only
        compile() can apply."""
        spec = self.spec
        options = {
            "optimizerArgs": spec.optimizer_args, "lossWeights": spec.loss_weights,
            "gradientClipNorm": spec.clip_norm, "gradientClipValue": spec.clip_value,
            "accumulationSteps": spec.accumulation > 1,
        }  # fmt: skip
        if named := [name for name, value in options.items() if value]:
            raise invalid(
                f"the model is compiled, so {', '.join(named)} cannot be set by Params: pass loss "
                "and optimizer to KerasEstimator, or compile the model with these values"
            )
        if spec.learning_rate is not None:
            self.model.optimizer.learning_rate = spec.learning_rate

    def fit(
        self,
        train: Any,
        validation: Any = None,
        after_epoch: Callable[[dict[str, Any]], None] = lambda row: None,
    ) -> None:
        """Trains until the configured number of epochs is reached.

        Args:
            train, validation: loaders of minibatches {column: array}.
            after_epoch: called with the figures of each epoch.

        Raises:
            ValueError: columns, model or loss do not fit, or the loss is not finite.
        """
        self.early.state = self.run["stop"]
        self.after_epoch = after_epoch
        run, spec = self.run, self.spec
        if run["epoch"] < spec.epochs and not run["stopped"] and len(train):
            dataset = Batches(train, partial(batch_of, spec=spec, note=self._note))
            own = [dataset.callback(), _Epochs(self, validation)]
            if self.code.scheduler is not None:
                own.append(keras.callbacks.LearningRateScheduler(self.code.scheduler))
            theirs = [c for c in self.code.callbacks if isinstance(c, keras.callbacks.Callback)]
            self.model.fit(
                dataset,
                initial_epoch=run["epoch"],
                epochs=spec.epochs,
                shuffle=False,
                verbose=0,
                callbacks=[*own, *theirs, _End(self)],
            )
        if self.best is not None:
            self.model.set_weights(self.best)

    def _note(self, x: Any) -> None:
        self._sample = x if self._sample is None else self._sample

    def outputs(self) -> list[list[Any]] | None:
        """[type, number of dimensions without rows] of each output; None if nothing was trained."""
        if self._sample is None:
            return self.run.get("output")
        found = keras.tree.flatten(self.model.predict_on_batch(self._sample))
        return [[str(np.asarray(value).dtype), np.ndim(value) - 1] for value in found]

    def validate(self, loader: Any) -> dict[str, float]:
        """The figures over all ranks' rows; repeated rows are counted once."""
        if not len(loader):
            raise invalid(NOTHING_HELD)
        rows = [0]
        note = partial(batch_of, spec=self.spec, note=self._note)
        batches = _unrepeated(loader, note, rows)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Your input ran out of data")
            found = self.model.evaluate(batches, verbose=0, return_dict=True)
        *sums, total = self.ranks.total([*(float(v) * rows[0] for v in found.values()), rows[0]])
        return {f"val_{name}": value / total for name, value in zip(found, sums, strict=True)}

    def archive(self) -> bytes:
        """The model as the content of a .keras file."""
        with TemporaryDirectory() as folder:
            path = Path(folder, "model.keras")
            self.model.save(path)
            return path.read_bytes()

    def state(self) -> bytes:
        """The weights and the optimizer's variables for restore(), in NumPy's format."""
        data = io.BytesIO()
        arrays = {"w": self.model.get_weights(), "b": self.best or []}
        arrays["o"] = [np.asarray(variable) for variable in self.model.optimizer.variables]
        named = {f"{kind}{i}": a for kind, each in arrays.items() for i, a in enumerate(each)}
        np.savez(data, **named)
        return data.getvalue()

    def restore(self, data: bytes) -> None:
        """Restores a state(). Raises ValueError if the state is of another model."""
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            found = {kind: [file[n] for n in _numbered(file.files, kind)] for kind in "wbo"}
        self.model.optimizer.build(self.model.trainable_variables)
        variables = self.model.optimizer.variables
        shapes = [tuple(w.shape) for w in self.model.get_weights()]
        if [w.shape for w in found["w"]] != shapes or len(variables) != len(found["o"]):
            raise invalid(
                "the checkpoint in storeDir is of another model or optimizer: its weights have "
                "other shapes; use another folder"
            )
        self.model.set_weights(found["w"])
        for variable, value in zip(variables, found["o"], strict=True):
            variable.assign(value)
        self.best = found["b"] or None


class Batches(KerasDataset):
    """A loader's minibatches for fit(), converted by a function."""

    def __init__(self, loader: Any, make: Callable[[Mapping[str, Any]], Any]):
        self._make = make
        super().__init__(loader, "", None)

    def _chosen(self, batch: dict[str, Any]) -> Any:
        return self._make(batch)


class _Epochs(keras.callbacks.Callback):
    """A callback that, at an epoch's end, computes the figures of all ranks, keeps the best
    weights, and calls the user's functions."""

    def __init__(self, trainer: KerasTrainer, validation: Any):
        super().__init__()
        self._trainer, self._validation = trainer, validation
        self._began = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._began = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._trainer.run["step"] += 1
        if not math.isfinite(loss := float((logs or {}).get("loss", 0.0))):
            raise not_finite(loss, self._trainer.run["step"] - 1)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        trainer, logs = self._trainer, logs if logs is not None else {}
        names = sorted(logs)
        sums = trainer.ranks.total([float(logs[name]) for name in names])
        logs |= {name: value / trainer.ranks.size for name, value in zip(names, sums, strict=True)}
        if self._validation is not None:
            logs |= trainer.validate(self._validation)
        row = {"epoch": epoch, **{name: float(value) for name, value in logs.items()}}
        row |= {"lr": float(trainer.model.optimizer.learning_rate)}
        row |= {"seconds": time.monotonic() - self._began}
        run, spec = trainer.run, trainer.spec
        run["epoch"], run["history"] = epoch + 1, [*run["history"], row]
        if spec.patience and trainer.early.observe(row, epoch) and spec.keeps_best:
            trainer.best = trainer.model.get_weights()
        for callback in trainer.code.callbacks:
            if not isinstance(callback, keras.callbacks.Callback):
                callback(trainer.model, row)


class _End(keras.callbacks.Callback):
    """A callback that runs after the user's: makes the ranks agree on whether to stop, and ends an
    epoch."""

    def __init__(self, trainer: KerasTrainer):
        super().__init__()
        self._trainer = trainer

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        trainer = self._trainer
        stops = trainer.model.stop_training or trainer.early.is_over
        [stops] = trainer.ranks.total([float(stops)])
        trainer.model.stop_training = trainer.run["stopped"] = stops > 0
        trainer.run["output"] = trainer.outputs()
        trainer.after_epoch(trainer.run["history"][-1])


def batch_of(batch: Mapping[str, Any], spec: TrainingSpec, note: Callable[[Any], None]) -> Any:
    """(x, y) or (x, y, weights) of a minibatch {column: array}."""
    x = tuple(as_array(batch, name) for name in spec.inputs)
    y = tuple(as_array(batch, name) for name in spec.labels)
    chosen = [values[0] if len(values) == 1 else values for values in (x, y)]
    note(chosen[0])
    return (*chosen, as_array(batch, spec.weight)) if spec.weight else tuple(chosen)


def _unrepeated(loader: Any, make: Callable[[Any], Any], rows: list[int]) -> Iterator[Any]:
    """The batches of a loader with uneven="weight", without repeated rows."""
    for batch in loader:
        is_new = batch[WEIGHT] > 0
        if count := int(is_new.sum()):
            rows[0] += count
            yield make({name: _selected(values, is_new) for name, values in batch.items()})


def _selected(values: Any, is_new: np.ndarray) -> Any:
    if isinstance(values, np.ndarray):
        return values[is_new]
    return [value for value, own in zip(values, is_new, strict=True) if own]


def as_array(batch: Mapping[str, Any], name: str) -> np.ndarray:
    """A column as an array: doubles in Keras' float type, bytes of one length as uint8.

    Raises:
        ValueError: the values do not fit an array.
    """
    if name not in batch:
        raise invalid(
            f"a minibatch has no {name!r}, only {', '.join(batch)}: the transformation must keep "
            "the columns that are read"
        )
    values = batch[name]
    if not isinstance(values, np.ndarray):
        return byte_rows(values, name)
    if values.dtype != np.float64:
        return values
    with np.errstate(over="ignore"):
        found = values.astype(keras.backend.floatx())
    if (too_large := np.isinf(found) & np.isfinite(values)).any():
        raise invalid(
            f"the column {name!r} has the value {values[too_large][0]}, which {found.dtype} cannot "
            "hold: scale the column"
        )
    return found


def _optimizer(optimizer: Any, spec: TrainingSpec) -> Any:
    """The optimizer with the Params applied."""
    arguments = dict(spec.optimizer_args)
    known = {
        "learning_rate": spec.learning_rate,
        "global_clipnorm": spec.clip_norm or None,
        "clipvalue": spec.clip_value or None,
        "gradient_accumulation_steps": spec.accumulation if spec.accumulation > 1 else None,
    }
    arguments = {**{name: v for name, v in known.items() if v is not None}, **arguments}
    if isinstance(optimizer, str):
        return keras.optimizers.get({"class_name": optimizer, "config": arguments})
    if isinstance(optimizer, keras.optimizers.Optimizer):
        for name, value in arguments.items():
            setattr(optimizer, name, value)
        return optimizer
    return optimizer(**arguments)


def _numbered(names: list[str], kind: str) -> list[str]:
    return sorted((n for n in names if n[0] == kind), key=lambda name: int(name[1:]))
