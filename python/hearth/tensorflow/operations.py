"""Collective operations on TensorFlow's tensors, with their gradients.

In a tf.function the operations run in program order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hearth.errors import invalid
from hearth.tensorflow import group

REDUCTIONS = {"sum": 0, "mean": 1, "min": 2, "max": 3}
WIRES = {"float32": 0, "float16": 1, "bfloat16": 2}


def allreduce(value: Any, op: str = "mean", wire: str = "float32", name: str = "") -> Any:
    """Reduces a tensor over the ranks, bitwise equal on all. Differentiable for sum and mean.

    Args:
        value: a tensor, or a tf.IndexedSlices, of the same shape on all ranks: float16, bfloat16,
            float32, float64, int32, int64, uint8 or bool. For slices, returns the slices of all
            ranks.
        op: "sum", "mean", "min" or "max"; slices support "sum" and "mean".
        wire: the type in which float32 sums and means are sent between hosts: "float32", "float16"
            or "bfloat16".
        name: compared between the ranks, and part of errors.

    Raises:
        ValueError: no such op or wire.
        tf.errors.AbortedError: a rank left. DeadlineExceededError: a rank did not call in time.
        InvalidArgumentError: a rank called another operation. Each message names the rank.
    """
    return grouped_allreduce([value], op, wire, [name] if name else [])[0]


def grouped_allreduce(
    values: Sequence[Any], op: str = "mean", wire: str = "float32", names: Sequence[str] = ()
) -> list[Any]:
    """allreduce() of several tensors in one op, which finishes when all are reduced."""
    _check(op, REDUCTIONS, "op")
    _check(wire, WIRES, "wire")
    results: list[Any] = list(values)
    dense = [i for i, value in enumerate(values) if not isinstance(value, tf.IndexedSlices)]
    if dense:
        found = group.ops().hearth_all_reduce(
            inputs=[tf.convert_to_tensor(values[i]) for i in dense],
            reduction=REDUCTIONS[op],
            wire=WIRES[wire],
            names=[names[i] for i in dense] if names else [],
        )
        for i, tensor in zip(dense, found, strict=True):
            results[i] = tensor
    for i in range(len(values)):
        if isinstance(values[i], tf.IndexedSlices):
            results[i] = _reduce_slices(values[i], op, names[i] if names else "")
    return results


def _reduce_slices(slices: tf.IndexedSlices, op: str, name: str) -> tf.IndexedSlices:
    if op not in ("sum", "mean"):
        raise invalid(f"tf.IndexedSlices are reduced by 'sum' or 'mean', not {op!r}")
    rows = _rows_of_ranks(slices.values, f"rows of {name}")
    values = _gather(slices.values, rows, f"values of {name}")
    if op == "mean":
        ranks = tf.cast(group.size(), values.dtype)
        # Truncates integers, like the core's mean of a dense integer tensor.
        values = tf.truncatediv(values, ranks) if values.dtype.is_integer else values / ranks
    indices = _gather(slices.indices, rows, f"indices of {name}")
    return tf.IndexedSlices(values, indices, slices.dense_shape)


def allgather(value: Any, name: str = "") -> Any:
    """Concatenates the ranks' tensors along the first dimension, whose length may differ between
    ranks; scalars become a vector. Differentiable.

    Raises as allreduce().
    """
    value = tf.convert_to_tensor(value)
    if value.shape.rank == 0:
        value = value[None]
    return _gather(value, _rows_of_ranks(value, f"rows of {name}" if name else ""), name)


def _rows_of_ranks(value: Any, name: str) -> Any:
    own = tf.cast(tf.shape(value)[:1], tf.int64)
    place = tf.one_hot(group.rank(), group.size(), dtype=tf.int64)
    [rows] = group.ops().hearth_all_reduce(
        inputs=[place * own], reduction=REDUCTIONS["sum"], wire=0, names=[name]
    )
    return rows


def _gather(value: Any, rows: Any, name: str) -> Any:
    found = group.ops().hearth_all_gather(input=value, rows=rows, names=[name])
    found.set_shape([None, *value.shape[1:]])
    return found


def broadcast(value: Any, root_rank: int = 0, name: str = "") -> Any:
    """The tensor of rank `root_rank`, on all ranks. Differentiable. Raises as allreduce()."""
    [found] = group.ops().hearth_broadcast(
        inputs=[tf.convert_to_tensor(value)], root=root_rank, names=[name] if name else []
    )
    return found


def broadcast_variables(variables: Sequence[Any], root_rank: int = 0) -> None:
    """Sets variables, of TensorFlow or Keras, to those of rank `root_rank`. Raises as allreduce().

    Call it outside of a tf.function.
    """
    plain = [getattr(variable, "value", variable) for variable in variables]
    tensors = [tf.convert_to_tensor(each() if callable(each) else each) for each in plain]
    numbers = [i for i, tensor in enumerate(tensors) if tensor.dtype != tf.string]
    if not numbers:
        return
    found = group.ops().hearth_broadcast(
        inputs=[tensors[i] for i in numbers],
        root=root_rank,
        names=[name_of(variables[i]) for i in numbers],
    )
    for i, tensor in zip(numbers, found, strict=True):
        variables[i].assign(tensor)


def name_of(variable: Any) -> str:
    """The name of a variable, of TensorFlow or Keras, common to all ranks."""
    return str(getattr(variable, "path", None) or getattr(variable, "name", ""))


def next_step() -> None:
    """Starts a training step: calls of different steps are never matched between ranks.

    Call it in custom loops and train_steps in which a rank may skip its gradients, e.g. because its
    loss is not finite: the skipped calls then raise an error. All ranks call it equally often.
    DistributedGradientTape and, after use_for_collectives(), strategy.run() start a step
    themselves. In a tf.function it runs at each call of the function. Raises HearthError before
    init().
    """
    group.ops().hearth_step()


def _check(value: str, known: dict[str, int], what: str) -> None:
    if value not in known:
        raise invalid(f"{what}={value!r}: it must be one of {', '.join(map(repr, known))}")


@tf.RegisterGradient("HearthAllReduce")
def _of_all_reduce(op: Any, *gradients: Any) -> list[Any]:
    """Each rank's input contributes to every rank's sum, so the gradients are summed, too."""
    reduction = op.get_attr("reduction")
    name = next(name for name, number in REDUCTIONS.items() if number == reduction)
    if name not in ("sum", "mean"):
        raise LookupError(f"allreduce(op={name!r}) has no gradient: use 'sum' or 'mean'")
    whole = [_whole(g, x) for g, x in zip(gradients, op.inputs, strict=True)]
    return grouped_allreduce(whole, name, names=_gradients_of(op))


@tf.RegisterGradient("HearthAllGather")
def _of_all_gather(op: Any, gradient: Any) -> list[Any]:
    rows = op.inputs[1]
    [total] = grouped_allreduce([tf.convert_to_tensor(gradient)], "sum", names=_gradients_of(op))
    return [tf.split(total, rows, num=group.size())[group.rank()], None]


@tf.RegisterGradient("HearthBroadcast")
def _of_broadcast(op: Any, *gradients: Any) -> list[Any]:
    whole = [_whole(g, x) for g, x in zip(gradients, op.inputs, strict=True)]
    totals = grouped_allreduce(whole, "sum", names=_gradients_of(op))
    if group.rank() == op.get_attr("root"):
        return totals
    return [tf.zeros_like(total) for total in totals]


def _gradients_of(op: Any) -> list[str]:
    return [f"gradient of {tf.compat.as_str(name)}" for name in op.get_attr("names")]


def _whole(gradient: Any, like: Any) -> Any:
    """The gradient; zeros on a rank that did not use the result."""
    return tf.zeros_like(like) if gradient is None else tf.convert_to_tensor(gradient)
