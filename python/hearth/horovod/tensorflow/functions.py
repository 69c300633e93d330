"""Broadcasts variables of rank 0, and returns ranks and sizes as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hearth.errors import invalid
from hearth.horovod import basics, current, objects
from hearth.horovod.process_sets import ProcessSet, global_process_set
from hearth.horovod.tensorflow.operations import broadcast_


def broadcast_variables(
    variables: Sequence[Any],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
    inplace: bool = False,
) -> None:
    """Sets variables, of TensorFlow or Keras, to those of rank `root_rank`, in one operation.

    Raises:
        tf.errors.FailedPreconditionError: the variables differ in number, type or shape between the
            ranks, or a rank is lost.
    """
    numbers = [each for each in variables if "string" not in str(each.dtype)]
    if numbers:
        broadcast_(numbers, root_rank, process_set=process_set)


def broadcast_global_variables(root_rank: int) -> None:
    """Raises RuntimeError: variables are not global in TensorFlow 2."""
    raise invalid(
        "broadcast_global_variables() requires TensorFlow 1: use "
        "broadcast_variables(model.variables, root_rank)"
    )


def rank_op(name: str | None = None) -> Any:
    """rank() as a tensor."""
    return tf.constant(basics.rank(), name=name)


def local_rank_op(name: str | None = None) -> Any:
    """local_rank() as a tensor."""
    return tf.constant(basics.local_rank(), name=name)


def local_size_op(name: str | None = None) -> Any:
    """local_size() as a tensor."""
    return tf.constant(basics.local_size(), name=name)


def size_op(process_set_id: int = 0, name: str | None = None) -> Any:
    """The number of ranks of a process set as a tensor."""
    return tf.constant(len(current.engine().sets[process_set_id]), name=name)


def process_set_included_op(process_set_id: int = 0, name: str | None = None) -> Any:
    """Whether this rank is in a process set, 1 or 0, as a tensor."""
    return tf.constant(int(basics.rank() in current.engine().sets[process_set_id]), name=name)


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """objects.broadcast_object(); `session` is for TensorFlow 1, and ignored."""
    return objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(
    root_rank: int = 0,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """A function that passes its argument, and these arguments, to broadcast_object()."""
    return lambda obj: objects.broadcast_object(obj, root_rank, name, process_set)


def allgather_object(
    obj: Any,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """objects.allgather_object(); `session` is for TensorFlow 1, and ignored."""
    return objects.allgather_object(obj, name, process_set)
