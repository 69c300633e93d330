"""Callbacks of Horovod for Keras 3."""

from __future__ import annotations

import keras

from hearth.horovod.tensorflow import callback_parts as parts


class BroadcastGlobalVariablesCallback(parts.BroadcastPart, keras.callbacks.Callback):
    """Gives all ranks the variables of rank `root_rank`."""


class MetricAverageCallback(parts.MetricAveragePart, keras.callbacks.Callback):
    """Averages the logs of an epoch over the ranks."""


class LearningRateScheduleCallback(parts.SchedulePart, keras.callbacks.Callback):
    """Changes the learning rate by epoch."""


class LearningRateWarmupCallback(parts.WarmupPart, keras.callbacks.Callback):
    """Raises the learning rate in the first epochs."""
