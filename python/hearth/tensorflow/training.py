"""Data-parallel training: averages gradients over the ranks before they are applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from hearth import HearthError
from hearth.errors import invalid
from hearth.tensorflow import group
from hearth.tensorflow.operations import allreduce, grouped_allreduce, name_of, next_step
from hearth.tensorflow.optimizer_methods import (
    METHODS,
    decide_together,
    innermost,
    method_of,
    replace_method,
)

# Gradients are reduced in ops of about this size. The last layers' gradients are reduced first,
# while those of earlier layers are still being computed.
_BUCKET_BYTES = 8 << 20


def reduce_gradients(
    gradients: Sequence[Any], op: str = "mean", wire: str = "float32", names: Sequence[str] = ()
) -> list[Any]:
    """The gradients reduced over the ranks; None stays None, and must be None on all ranks.

    `names`: a name for each gradient, compared between the ranks; default: numbers.
    """
    results = list(gradients)
    labels = list(names) or [f"gradient {i}" for i in range(len(results))]
    # A None gradient is reduced as an empty tensor, whose name says that there is no gradient.
    given = [tf.zeros([0]) if gradient is None else gradient for gradient in results]
    for i, gradient in enumerate(results):
        if gradient is None:
            labels[i] = f"no gradient of {labels[i]}"
    for bucket in _buckets(given):
        found = grouped_allreduce([given[i] for i in bucket], op, wire, [labels[i] for i in bucket])
        for i, gradient in zip(bucket, found, strict=True):
            results[i] = None if results[i] is None else gradient
    return results


def _buckets(gradients: Sequence[Any]) -> list[list[int]]:
    buckets: list[list[int]] = [[]]
    size = 0
    for i in reversed(range(len(gradients))):
        shape, dtype = gradients[i].shape, gradients[i].dtype
        size += (shape.num_elements() or 0) * dtype.size
        buckets[-1].append(i)
        if size >= _BUCKET_BYTES:
            buckets.append([])
            size = 0
    return [bucket for bucket in buckets if bucket]


def DistributedOptimizer(optimizer: Any, op: str = "mean", wire: str = "float32") -> Any:
    """Makes an optimizer apply the ranks' reduced gradients, and returns the same object with its
    settings and state. Compile the model with it, even if the model was compiled before.

    For Keras 3 on TensorFlow, without jit_compile, and tf_keras, in model.fit and in loops. A saved
    model loads with the plain optimizer. Under mixed_float16 all ranks apply a step, or none does.

    Args:
        optimizer: a Keras optimizer, new, used or loaded.
        op: "mean" or "sum". wire: see allreduce().

    Raises:
        ValueError: no such op or wire, or the optimizer reduces gradients already.
        TypeError: not a Keras optimizer.
        HearthError: Keras does not run on TensorFlow.
        Errors of the operations, when gradients are applied.
    """
    if op not in ("mean", "sum"):
        raise invalid(f"op={op!r}: it must be 'mean' or 'sum'")
    inmost = innermost(optimizer)
    method = method_of(inmost, _MARK)
    if method == "apply":
        _check_backend()
        decide_together(inmost, _all_finite)
    own = getattr(inmost, method).__func__
    replace_method(inmost, method, METHODS[method](own, _reducer(op, wire)), _MARK)
    return optimizer


_MARK = "_by_hearth"


def _reducer(op: str, wire: str) -> Any:
    def reduce(gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        return reduce_gradients(gradients, op, wire, [name_of(v) for v in variables])

    return reduce


def _check_backend() -> None:
    import keras

    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise HearthError(
            f"Keras runs on {backend!r} here, but hearth.tensorflow only reduces TensorFlow "
            "gradients: set KERAS_BACKEND=tensorflow"
        )


def _all_finite(finite: Any) -> Any:
    return allreduce(tf.convert_to_tensor(finite), "min", name="gradients are finite")


class DistributedGradientTape(tf.GradientTape):
    """A tf.GradientTape whose gradient() is reduced over the ranks.

    Accepts the arguments of tf.GradientTape, and `op` and `wire` as in allreduce(). Each tape
    starts a step: see next_step().
    """

    def __init__(self, *args: Any, op: str = "mean", wire: str = "float32", **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._op, self._wire = op, wire

    def __enter__(self) -> Any:
        if group.is_initialized():
            next_step()
        return super().__enter__()

    def gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        """tf.GradientTape.gradient(), reduced over the ranks."""
        found = super().gradient(target, sources, *args, **kwargs)
        names = [name_of(source) for source in tf.nest.flatten(sources)]
        flat = reduce_gradients(tf.nest.flatten(found), self._op, self._wire, names)
        return tf.nest.pack_sequence_as(found, flat)


def CheckpointCallback(steps: Any, save: Callable[[Any], object], every: int = 100) -> Any:
    """A Keras callback for model.fit over in_step(feed=...): rank 0 calls save(model) every `every`
    steps and at the end of fit(); the callback then marks the rows of all steps so far as safe on
    all ranks, so that a cluster with restart=True does not send them again.

    Args:
        steps: the result of in_step(). save: writes the model atomically: to a temporary name, then
            renames it. every: number of steps.
    """
    import keras

    class Checkpoint(keras.callbacks.Callback):
        done = 0  # number of steps over all epochs of fit()
        safe = 0
        of_epoch = 0

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.of_epoch = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            # With steps_per_execution, `batch` is the last of several steps.
            self.done += batch + 1 - self.of_epoch
            self.of_epoch = batch + 1
            if self.done >= self.safe + every:
                self.keep()

        def on_train_end(self, logs: Any = None) -> None:
            if self.done > self.safe:
                self.keep()

        def keep(self) -> None:
            if group.rank() == 0:
                save(self.model)
            # A barrier: no rank marks rows as safe before the checkpoint is written.
            allreduce(tf.zeros([1]), "max", name="checkpoint")
            steps.commit(min(self.done, steps.given))  # the last execution may have fewer steps
            self.safe = self.done

    return Checkpoint()


def MetricAverageCallback() -> Any:
    """A Keras callback: at the end of each epoch, averages the values of the logs over the ranks.

    Put this callback before callbacks that read the logs.
    """
    import keras

    class MetricAverage(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            for name in sorted(logs or {}):
                value = tf.constant(float(logs[name]), tf.float64)
                logs[name] = float(allreduce(value, "mean", name=name))

    return MetricAverage()
