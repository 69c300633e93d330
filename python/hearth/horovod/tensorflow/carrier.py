"""Runs the engine's operations on TensorFlow's tensors, eagerly or in a graph.

In a tf.function the operations run in program order, one after another, like stateful functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hearth.errors import InvalidArgumentError
from hearth.horovod import current, names
from hearth.horovod.calls import set_id
from hearth.horovod.errors import HorovodInternalError
from hearth.horovod.process_sets import ProcessSet


class OperationFailedError(tf.errors.FailedPreconditionError, HorovodInternalError):
    """A failed collective operation, as an exception of both TensorFlow and Horovod."""

    def __init__(self, text: str, lost: bool = False):
        tf.errors.FailedPreconditionError.__init__(self, None, None, text)
        self.lost = lost


class InvalidCallError(tf.errors.InvalidArgumentError, InvalidArgumentError):
    """An invalid call, as an exception of both TensorFlow and Python."""

    def __init__(self, text: str):
        tf.errors.InvalidArgumentError.__init__(self, None, None, text)


def carry(
    call: dict[str, Any],
    name: str | None,
    inputs: Sequence[Any],
    process_set: ProcessSet,
    more: Callable[[list[Any]], dict[str, Any]] | None = None,
) -> list[Any]:
    """The operation's results, with the inputs' types; in a graph their shapes are unknown.

    Args:
        more: computes further fields of the call from the values of all inputs; inputs after the
            first are then not sent.

    Raises:
        InvalidCallError: the name is in flight, or this rank is not in the process set.
        OperationFailedError: the operation failed; in a graph it is a tf.errors.OpError with the
            reason.
    """
    number = set_id(process_set)
    kinds = [tensor.dtype for tensor in inputs[: 1 if more else None]]
    outputs = [*kinds, tf.int32] if call["kind"] == "alltoall" else kinds

    def run(*values: Any) -> list[Any]:
        whole = {**call, **more(list(values))} if more else call
        return _run(whole, name, number, [np.asarray(v) for v in values[: len(kinds)]])

    if not tf.executing_eagerly():
        return list(tf.numpy_function(run, list(inputs), outputs))
    try:
        found = run(*[tensor.numpy() for tensor in inputs])
    except HorovodInternalError as error:
        raise OperationFailedError(str(error), error.lost) from error
    except ValueError as error:
        raise InvalidCallError(str(error)) from error
    return [tf.constant(value, kind) for value, kind in zip(found, outputs, strict=True)]


def _run(call: dict[str, Any], name: str | None, set_id: int, values: list[Any]) -> list[Any]:
    kinds = [value.dtype for value in values]
    arrays = [_bits(np.array(value, order="C")) for value in values]
    whole = {
        **call,
        "dtypes": [kind.name for kind in kinds],
        "shapes": [list(array.shape) for array in arrays],
    }
    unique_name = names.of_operation(call["kind"], name, set_id)
    found = current.engine().submit(whole, unique_name, arrays, set_id).result()
    typed = [array.view(kind) for array, kind in zip(found, kinds, strict=False)]
    return typed + list(found[len(kinds) :])


def _bits(array: Any) -> Any:
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array
