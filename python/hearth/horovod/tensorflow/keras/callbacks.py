"""Callbacks of Horovod for tf.keras."""

from __future__ import annotations

from functools import partial

from tensorflow import keras

from hearth.horovod.tensorflow import callback_parts as parts

_made = partial(parts.callback_class, keras, __name__)
BroadcastGlobalVariablesCallback = _made(parts.BroadcastGlobalVariablesCallback)
MetricAverageCallback = _made(parts.MetricAverageCallback)
LearningRateScheduleCallback = _made(parts.LearningRateScheduleCallback)
LearningRateWarmupCallback = _made(parts.LearningRateWarmupCallback)
