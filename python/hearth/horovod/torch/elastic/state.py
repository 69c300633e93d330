"""The elastic state of a PyTorch program."""

from __future__ import annotations

import copy
from typing import Any

from hearth.horovod.elastic import ObjectState
from hearth.horovod.torch.elastic.sampler import ElasticSampler
from hearth.horovod.torch.functions import broadcast_optimizer_state, broadcast_parameters


class TorchState(ObjectState):
    """A state of a model, an optimizer, and other attributes, such as TorchState(model, optimizer,
    batch=0).

    Values with state_dict() and load_state_dict() are saved and restored by these methods.
    """

    def __init__(self, model: Any = None, optimizer: Any = None, **kwargs: Any):
        parts = {"model": model, "optimizer": optimizer, **kwargs}
        self._parts = {n: p for n, p in parts.items() if hasattr(p, "load_state_dict")}
        super().__init__(**{n: v for n, v in kwargs.items() if n not in self._parts})
        self._set(self._parts)
        self._saved_parts: dict[str, Any] = {}
        self.save()

    def save(self) -> None:
        self._saved_parts = {
            name: copy.deepcopy(getattr(self, name).state_dict()) for name in self._parts
        }
        super().save()

    def restore(self) -> None:
        for name, saved in self._saved_parts.items():
            getattr(self, name).load_state_dict(copy.deepcopy(saved))
        super().restore()

    def sync(self) -> None:
        for name in self._parts:
            part = getattr(self, name)
            if isinstance(part, ElasticSampler):
                part.sync()
            elif hasattr(part, "param_groups"):
                broadcast_optimizer_state(part, 0)
            elif hasattr(part, "named_parameters"):
                broadcast_parameters(part.state_dict(), 0)
            else:
                part.load_state_dict(self._bcast_object(part.state_dict()))
        super().sync()
        self.save()

    def reset(self) -> None:
        """Makes samplers redistribute the remaining rows of the epoch."""
        for part in self._parts.values():
            if isinstance(part, ElasticSampler):
                part.reset()
