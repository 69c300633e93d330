"""Batch normalization over the minibatches of all ranks, for tf.keras (Keras 3 or tf_keras)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hearth.errors import invalid
from hearth.horovod import basics, reductions
from hearth.horovod.tensorflow.operations import allreduce

_BatchNormalization: Any = tf.keras.layers.BatchNormalization


class SyncBatchNormalization(_BatchNormalization):
    """A layer like tf.keras.layers.BatchNormalization, with mean and variance over all ranks'
    minibatches during training; each rank has the same weight."""

    def __init__(self, fused: bool = False, **kwargs: Any):
        """Raises ValueError for fused=True, which uses only one rank's statistics."""
        if fused is not False:
            raise invalid("SyncBatchNormalization does not support fused=True")
        if hasattr(_BatchNormalization, "_fused_can_be_used"):  # only in tf_keras
            kwargs["fused"] = False
        super().__init__(**kwargs)

    def _moments(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        own, variance = super()._moments(*args, **kwargs)
        if basics.size() == 1:
            return own, variance
        mean = allreduce(own, op=reductions.Average)
        return mean, allreduce(variance + tf.square(own - mean), op=reductions.Average)
