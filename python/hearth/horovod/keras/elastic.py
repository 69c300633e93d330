"""Elastic programs, by the API of Horovod for Keras 3."""

from __future__ import annotations

import keras

from hearth.horovod.elastic import run as run
from hearth.horovod.tensorflow import callback_parts as parts
from hearth.horovod.tensorflow.elastic import ObjectState as ObjectState
from hearth.horovod.tensorflow.elastic import TensorFlowKerasState

KerasState = TensorFlowKerasState


class CommitStateCallback(parts.CommitPart, keras.callbacks.Callback):
    """Commits an elastic state."""


class UpdateBatchStateCallback(parts.BatchPart, keras.callbacks.Callback):
    """Counts minibatches in state.batch."""


class UpdateEpochStateCallback(parts.EpochPart, keras.callbacks.Callback):
    """Counts epochs in state.epoch."""
