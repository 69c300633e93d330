"""Horovod's functions for Keras, shared by Keras 3 and tf_keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hearth.horovod.tensorflow import operations
from hearth.horovod.tensorflow.compression import Compression as Compression
from hearth.horovod.tensorflow.functions import (
    broadcast_global_variables as broadcast_global_variables,
)
from hearth.horovod.tensorflow.functions import broadcast_variables as broadcast_variables
from hearth.horovod.tensorflow.gradients import local_variables
from hearth.horovod.tensorflow.optimizer import DistributedOptimizer as DistributedOptimizer


def allreduce(
    value: Any,
    name: str | None = None,
    average: bool | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: int | None = None,
    compression: Any = Compression.none,
) -> Any:
    """Reduces the ranks' values; returns an array. See hearth.horovod.tensorflow.allreduce()."""
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
    """Concatenates the ranks' values along the first dimension; returns an array."""
    return operations.allgather(tf.convert_to_tensor(value), name).numpy()


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    """The value of rank `root_rank`, as an array."""
    return operations.broadcast(tf.convert_to_tensor(value), root_rank, name).numpy()


def reducescatter(value: Any, name: str | None = None, op: int = 0) -> Any:
    """This rank's rows of the reduced values, as an array."""
    return operations.reducescatter(tf.convert_to_tensor(value), op=op, name=name).numpy()


def PartialDistributedOptimizer(
    optimizer: Any, *args: Any, local_layers: Any = None, **options: Any
) -> Any:
    """Like DistributedOptimizer(), but gradients of `local_layers`, a layer or a list of layers,
    are not reduced. With scale_local_gradients they are divided by the number of ranks."""
    made = DistributedOptimizer(optimizer, *args, **options)
    for variable in local_variables(local_layers):
        made.register_local_var(variable)
    return made


def loader(keras: Any) -> Callable[..., Any]:
    """load_model() for `keras`: Keras 3 or tf_keras."""

    def load_model(
        filepath: Any,
        custom_optimizers: Any = None,
        custom_objects: Any = None,
        compression: Any = Compression.none,
        legacy_opts: bool = False,
    ) -> Any:
        """Loads a saved model, and makes its optimizer distributed.

        Args:
            custom_optimizers: classes of optimizers that Keras does not know.
            custom_objects: by name, as for keras.models.load_model().
            legacy_opts: ignored.
        """
        known = {each.__name__: each for each in custom_optimizers or ()}
        known |= custom_objects or {}
        model = keras.models.load_model(filepath, custom_objects=known)
        if getattr(model, "optimizer", None) is not None:
            DistributedOptimizer(model.optimizer, compression=compression)
            model.train_function = None
        return model

    return load_model
