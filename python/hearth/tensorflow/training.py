"""Data-parallel training: gradients that are averaged over the ranks before they are applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from hearth import HearthError
from hearth.tensorflow.group import rank
from hearth.tensorflow.operations import allreduce, grouped_allreduce

# Gradients are reduced in ops of so many bytes, the last layers' first: those run while the
# gradients of the layers before them are still worked out.
_BUCKET_BYTES = 8 << 20


def reduce_gradients(
    gradients: Sequence[Any], op: str = "mean", wire: str = "float32", names: Sequence[str] = ()
) -> list[Any]:
    """The gradients combined over the ranks; None stays None, and must be None on all ranks."""
    results = list(gradients)
    for bucket in _buckets(gradients):
        found = grouped_allreduce(
            [gradients[i] for i in bucket], op, wire, [names[i] for i in bucket] if names else []
        )
        for i, gradient in zip(bucket, found, strict=True):
            results[i] = gradient
    return results


def _buckets(gradients: Sequence[Any]) -> list[list[int]]:
    buckets: list[list[int]] = [[]]
    size = 0
    for i in reversed(range(len(gradients))):
        if gradients[i] is None:
            continue
        shape, dtype = gradients[i].shape, gradients[i].dtype
        size += (shape.num_elements() or 0) * dtype.size
        buckets[-1].append(i)
        if size >= _BUCKET_BYTES:
            buckets.append([])
            size = 0
    return [bucket for bucket in buckets if bucket]


def DistributedOptimizer(optimizer: Any, op: str = "mean", wire: str = "float32") -> Any:
    """An optimizer of the same class and settings that applies the ranks' combined gradients.

    For Keras 3 on TensorFlow, without jit_compile, and tf_keras, in model.fit and in loops. What is
    saved with it loads as the plain optimizer.

    Args:
        optimizer: a Keras optimizer, not yet used.
        op: "mean" or "sum". wire: see allreduce().

    Raises:
        ValueError: no such op or wire. TypeError: this is no Keras optimizer.
        HearthError: Keras runs on something else than TensorFlow.
        The operations' errors, when gradients are applied.
    """
    if op not in ("mean", "sum"):
        raise ValueError(f"op={op!r}: gradients are combined by 'mean' or 'sum'")
    plain = type(optimizer)
    if not hasattr(plain, "from_config"):
        raise TypeError(f"a Keras optimizer is wanted, not a {plain.__name__}")
    if plain.__module__.partition(".")[0] == "keras":
        _check_backend()
    method = "apply" if hasattr(plain, "apply") else "apply_gradients"
    reduce = _reducer(op, wire)
    members = {method: _APPLIES[method](plain, reduce), "__module__": plain.__module__}
    return type(plain.__name__, (plain,), members).from_config(optimizer.get_config())


def _reducer(op: str, wire: str) -> Any:
    def reduce(gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        names = [str(getattr(v, "path", getattr(v, "name", ""))) for v in variables]
        return reduce_gradients(gradients, op, wire, names)

    return reduce


def _check_backend() -> None:
    import keras

    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise HearthError(
            f"Keras runs on {backend!r} here, but hearth.tensorflow combines TensorFlow gradients "
            "alone: set KERAS_BACKEND=tensorflow"
        )


def _of_keras_3(plain: Any, reduce: Any) -> Any:
    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        variables = trainable_variables
        if variables is None:
            variables = self._trainable_variables
        return plain.apply(self, reduce(list(grads), list(variables)), trainable_variables)

    return apply


def _of_tf_keras(plain: Any, reduce: Any) -> Any:
    def apply_gradients(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        gradients, variables = zip(*grads_and_vars, strict=True)
        pairs = zip(reduce(gradients, variables), variables, strict=True)
        return plain.apply_gradients(self, list(pairs), *args, **kwargs)

    return apply_gradients


_APPLIES = {"apply": _of_keras_3, "apply_gradients": _of_tf_keras}


class DistributedGradientTape(tf.GradientTape):
    """A tf.GradientTape whose gradient() gives the ranks' combined gradients.

    Takes a tape's own arguments, and `op` and `wire` as allreduce().
    """

    def __init__(self, *args: Any, op: str = "mean", wire: str = "float32", **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._op, self._wire = op, wire

    def gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        """tf.GradientTape.gradient(), reduced over the ranks."""
        found = super().gradient(target, sources, *args, **kwargs)
        flat = tf.nest.flatten(found)
        return tf.nest.pack_sequence_as(found, reduce_gradients(flat, self._op, self._wire))


def CheckpointCallback(steps: Any, save: Callable[[Any], object], every: int = 100) -> Any:
    """A Keras callback for model.fit over in_step(feed=...): rank 0 calls save(model) after every
    so many steps and at the end of the fit; then the rows of the steps so far are safe on all
    ranks, so that a cluster with restart=True does not send them again.

    Args:
        steps: what in_step() gave. save: writes the model, whole or not at all: to another name
            that then becomes the right one. every: how many steps.
    """
    import keras

    class Checkpoint(keras.callbacks.Callback):
        done = 0  # steps, of all epochs of the fit
        safe = 0
        of_epoch = 0

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.of_epoch = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            # The last step of several, where the model was compiled with steps_per_execution.
            self.done += batch + 1 - self.of_epoch
            self.of_epoch = batch + 1
            if self.done >= self.safe + every:
                self.keep()

        def on_train_end(self, logs: Any = None) -> None:
            if self.done > self.safe:
                self.keep()

        def keep(self) -> None:
            if rank() == 0:
                save(self.model)
            # What is safe somewhere is in the checkpoint.
            allreduce(tf.zeros([1]), "max", name="checkpoint")
            steps.commit(min(self.done, steps.given))  # the last execution may have fewer steps
            self.safe = self.done

    return Checkpoint()


def MetricAverageCallback() -> Any:
    """A Keras callback: at an epoch's end the logs hold the mean of the ranks' values.

    Put it before callbacks that read the logs.
    """
    import keras

    class MetricAverage(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            for name in sorted(logs or {}):
                value = tf.constant(float(logs[name]), tf.float64)
                logs[name] = float(allreduce(value, "mean", name=name))

    return MetricAverage()
