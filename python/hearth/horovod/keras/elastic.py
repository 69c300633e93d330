"""Horovod's API for elastic programs, with Keras 3."""

from __future__ import annotations

from functools import partial

import keras

from hearth.horovod.elastic import run as run
from hearth.horovod.tensorflow import callback_parts as parts
from hearth.horovod.tensorflow.elastic import ObjectState as ObjectState
from hearth.horovod.tensorflow.elastic import TensorFlowKerasState

KerasState = TensorFlowKerasState
_made = partial(parts.callback_class, keras, __name__)
CommitStateCallback = _made(parts.CommitStateCallback)
UpdateBatchStateCallback = _made(parts.UpdateBatchStateCallback)
UpdateEpochStateCallback = _made(parts.UpdateEpochStateCallback)
