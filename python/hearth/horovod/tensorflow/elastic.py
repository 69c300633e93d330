"""Elastic programs of TensorFlow: `@hvd.elastic.run` and states of variables and Keras models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hearth.horovod.elastic import ObjectState as ObjectState
from hearth.horovod.elastic import State as State
from hearth.horovod.elastic import run as run
from hearth.horovod.tensorflow.functions import broadcast_variables


class TensorFlowState(ObjectState):
    """A state of variables and other attributes, such as TensorFlowState(variables, batch=0)."""

    def __init__(self, variables: Sequence[Any] | None = None, session: Any = None, **kwargs: Any):
        self._given = list(variables or ())
        super().__init__(**kwargs)
        self._values: list[Any] = []
        self.save()

    def variables(self) -> list[Any]:
        """The saved variables."""
        return self._given

    def save(self) -> None:
        self._values = [np.array(each.numpy()) for each in self.variables()]
        super().save()

    def restore(self) -> None:
        # Variables created after the last save() stay unchanged.
        for variable, value in zip(self.variables(), self._values, strict=False):
            variable.assign(value)
        super().restore()

    def sync(self) -> None:
        broadcast_variables(self.variables(), 0)
        super().sync()
        self.save()


class TensorFlowKerasState(TensorFlowState):
    """A state of a Keras model, its optimizer, and other attributes, such as
    TensorFlowKerasState(model, batch=0).

    If `optimizer` is None, the state contains the optimizer with which the model was compiled.
    """

    def __init__(
        self, model: Any, optimizer: Any = None, backend: Any = None, **kwargs: Any
    ) -> None:
        self.model = model
        self.optimizer = optimizer or getattr(model, "optimizer", None)
        super().__init__(**kwargs)

    def variables(self) -> list[Any]:
        """The variables of the model and the optimizer."""
        own = [] if self.optimizer is None else self.optimizer.variables
        return [*self.model.variables, *(own() if callable(own) else own)]
