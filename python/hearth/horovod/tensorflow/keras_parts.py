"""Horovod's functions for Keras, of Keras 3 and tf_keras alike."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hearth.horovod.process_sets import ProcessSet, global_process_set
from hearth.horovod.tensorflow import functions, operations
from hearth.horovod.tensorflow.compression import Compression
from hearth.horovod.tensorflow.optimizer import DistributedOptimizer


def allreduce(
    value: Any,
    name: str | None = None,
    average: bool | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: int | None = None,
    compression: Any = Compression.none,
) -> Any:
    """The ranks' values, reduced, as an array. See hearth.horovod.tensorflow.allreduce()."""
    return operations.allreduce(
        tf.convert_to_tensor(value),
        average,
        compression=compression,
        op=op,
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
        name=name,
    ).numpy()


def allgather(value: Any, name: str | None = None) -> Any:
    """The ranks' values along the first dimension, as an array."""
    return operations.allgather(tf.convert_to_tensor(value), name).numpy()


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    """The value of rank `root_rank`, as an array."""
    return operations.broadcast(tf.convert_to_tensor(value), root_rank, name).numpy()


def reducescatter(value: Any, name: str | None = None, op: int = 0) -> Any:
    """This rank's rows of the ranks' values, reduced, as an array."""
    return operations.reducescatter(tf.convert_to_tensor(value), op=op, name=name).numpy()


def broadcast_global_variables(root_rank: int) -> None:
    """Raises RuntimeError: use BroadcastGlobalVariablesCallback, or broadcast_variables()."""
    functions.broadcast_global_variables(root_rank)


def load(
    keras: Any,
    filepath: Any,
    custom_objects: Any = None,
    compression: Any = Compression.none,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """A saved model, whose optimizer is made distributed."""
    model = keras.models.load_model(filepath, custom_objects=custom_objects)
    if getattr(model, "optimizer", None) is not None:
        DistributedOptimizer(model.optimizer, compression=compression, process_set=process_set)
        model.train_function = None
    return model
