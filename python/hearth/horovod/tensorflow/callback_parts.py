"""Horovod's callbacks without their base class, which is Keras 3's or tf_keras's Callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hearth.errors import invalid
from hearth.horovod import basics
from hearth.horovod.process_sets import ProcessSet, global_process_set
from hearth.horovod.tensorflow.functions import broadcast_variables
from hearth.horovod.tensorflow.operations import allreduce


def callback_class(keras: Any, module: str, part: type) -> Any:
    """Makes a class of this module a Callback of `keras`. `module`: the module from which users
    import it."""
    about = {"__module__": module, "__doc__": part.__doc__}
    return type(part.__name__, (part, keras.callbacks.Callback), about)


class _Part:
    """Base of the classes that are mixed into Keras's Callback, which sets these attributes."""

    model: Any
    params: dict[str, Any]


class BroadcastGlobalVariablesCallback(_Part):
    """Broadcasts the model and optimizer of rank `root_rank` after the first minibatch, because
    neither has all its variables before."""

    def __init__(self, root_rank: int = 0, device: str = "", local_variables: Any = None):
        super().__init__()
        self.root_rank = root_rank
        self._local = {id(each) for each in local_variables or ()}
        self.broadcast_done = False

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.broadcast_done:
            return
        own = getattr(self.model.optimizer, "variables", ())
        variables = [*self.model.variables, *(own() if callable(own) else own)]
        shared = [each for each in variables if id(each) not in self._local]
        broadcast_variables(shared, self.root_rank)
        self.broadcast_done = True


class MetricAverageCallback:
    """Averages the logs over the ranks at the end of each epoch. Put this callback before callbacks
    that read the logs."""

    def __init__(self, device: str = "", process_set: ProcessSet = global_process_set):
        super().__init__()
        self.process_set = process_set

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        for name in sorted(logs or {}):
            value = tf.constant(float(logs[name]), tf.float64)
            mean = allreduce(value, name=f"metric.{name}", process_set=self.process_set)
            logs[name] = float(mean)


class LearningRateScheduleCallback(_Part):
    """Sets the learning rate to `initial_lr` times `multiplier`, a number or a function of the
    epoch, from `start_epoch` to the epoch before `end_epoch`.

    Without `staircase` it is set for every minibatch, with a fractional epoch. With
    `momentum_correction` an SGD optimizer's momentum is scaled in the step after a change.
    """

    def __init__(
        self,
        initial_lr: float,
        multiplier: float | Callable[[float], float],
        start_epoch: int = 0,
        end_epoch: int | None = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
    ):
        super().__init__()
        self.initial_lr = initial_lr
        self.start_epoch, self.end_epoch = start_epoch, end_epoch
        self.staircase = staircase or not callable(multiplier)
        self.multiplier = multiplier if callable(multiplier) else lambda epoch: multiplier
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch or 0
        self.current_epoch = 0
        self._momentum: float | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Raises ValueError if steps_per_epoch is needed and unknown."""
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = self.params.get("steps") or 0
            if not self.steps_per_epoch:
                raise invalid("pass steps_per_epoch=: the number of steps is not known here")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.current_epoch = epoch

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        epoch = self.current_epoch
        if epoch < self.start_epoch or (self.end_epoch is not None and epoch >= self.end_epoch):
            return
        if self.staircase and batch == 0:
            self._set(epoch)
        elif not self.staircase:
            self._set(epoch + batch / self.steps_per_epoch)

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._momentum is not None:
            self.model.optimizer.momentum = self._momentum
            self._momentum = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if logs is not None:
            logs["lr"] = self._rate()

    def _rate(self) -> float:
        return float(tf.convert_to_tensor(self.model.optimizer.learning_rate))

    def _set(self, epoch: float) -> None:
        before, rate = self._rate(), self.initial_lr * self.multiplier(epoch)
        self.model.optimizer.learning_rate = rate
        momentum = getattr(self.model.optimizer, "momentum", None)
        if self.momentum_correction and isinstance(momentum, float) and momentum and before:
            self._momentum = momentum
            self.model.optimizer.momentum = momentum * rate / before


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Raises the learning rate from `initial_lr` divided by the number of ranks to `initial_lr` in
    the first epochs."""

    def __init__(
        self,
        initial_lr: float,
        warmup_epochs: int = 5,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
        verbose: int = 0,
    ):
        def multiplier(epoch: float) -> float:
            size = basics.size()
            epoch += 1.0 / self.steps_per_epoch
            return 1.0 / size * (epoch * (size - 1) / warmup_epochs + 1)

        super().__init__(
            initial_lr,
            multiplier,
            end_epoch=warmup_epochs,
            staircase=False,
            momentum_correction=momentum_correction,
            steps_per_epoch=steps_per_epoch,
        )
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        if self.verbose and self.end_epoch == epoch + 1 and basics.rank() == 0:
            print(f"\nEpoch {epoch + 1}: warmed up to a learning rate of {self._rate():g}")


class CommitStateCallback:
    """Commits an elastic state after every `batches_per_commit` minibatches and each epoch."""

    def __init__(self, state: Any, batches_per_commit: int = 1):
        super().__init__()
        self.state, self.batches_per_commit = state, batches_per_commit

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        if (batch + 1) % self.batches_per_commit == 0:
            self.state.commit()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.commit()


class UpdateBatchStateCallback:
    """Counts the minibatches of an epoch in state.batch."""

    def __init__(self, state: Any):
        super().__init__()
        self.state = state

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        self.state.batch = batch + 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.batch = 0


class UpdateEpochStateCallback:
    """Counts the epochs in state.epoch, starting at the value that the state has before
    training."""

    def __init__(self, state: Any):
        super().__init__()
        self.state = state
        self._first = state.epoch

    def on_train_begin(self, logs: Any = None) -> None:
        self._first = self.state.epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.state.epoch = self._first + epoch + 1
