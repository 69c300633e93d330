"""Elastic programs of PyTorch: `@hvd.elastic.run` and hvd.elastic.TorchState."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator
from typing import Any

from torch.utils.data import Sampler

from hearth.horovod import basics
from hearth.horovod.elastic import ObjectState as ObjectState
from hearth.horovod.elastic import State as State
from hearth.horovod.elastic import run as run
from hearth.horovod.objects import allgather_object
from hearth.horovod.torch.functions import broadcast_optimizer_state, broadcast_parameters


class TorchState(ObjectState):
    """A model, an optimizer, and other attributes: TorchState(model, optimizer, batch=0).

    Attributes whose values have state_dict() and load_state_dict() are kept by those.
    """

    def __init__(self, model: Any = None, optimizer: Any = None, **kwargs: Any):
        parts = {"model": model, "optimizer": optimizer, **kwargs}
        self._parts = {n: p for n, p in parts.items() if hasattr(p, "load_state_dict")}
        super().__init__(**{n: v for n, v in kwargs.items() if n not in self._parts})
        self._set(self._parts)
        self._saved_parts: dict[str, Any] = {}
        self.save()

    def save(self) -> None:
        """See State."""
        self._saved_parts = {
            name: copy.deepcopy(getattr(self, name).state_dict()) for name in self._parts
        }
        super().save()

    def restore(self) -> None:
        """See State."""
        for name, saved in self._saved_parts.items():
            getattr(self, name).load_state_dict(copy.deepcopy(saved))
        super().restore()

    def sync(self) -> None:
        """See State."""
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
        """Samplers share out what is left of the epoch anew."""
        for part in self._parts.values():
            if isinstance(part, ElasticSampler):
                part.reset()


class ElasticSampler(Sampler[int]):
    """Shares a dataset out among the ranks, and what is left of an epoch after a reset."""

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0):
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_indices: set[int] = set()
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch: all rows are to be used."""
        self.epoch = epoch
        self.processed_indices = set()
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """This rank has used the rows of its minibatch `batch_idx`."""
        self.record_indices(self.get_indices(batch_idx, batch_size))

    def record_indices(self, indices: Any) -> None:
        """This rank has used these rows."""
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx: int, batch_size: int) -> list[int]:
        """The rows of a minibatch."""
        start = batch_idx * batch_size
        return self.indices[start : start + batch_size]

    def sync(self) -> None:
        """Collects the rows that any rank has used."""
        states = allgather_object(self.state_dict())
        self.processed_indices = set().union(*(each["processed_indices"] for each in states))
        self.epoch = states[0]["epoch"]
        self.reset()

    def reset(self) -> None:
        """Shares the rows that are left out among the ranks; some come twice to make it even."""
        self.num_replicas, self.rank = basics.size(), basics.rank()
        left = [i for i in range(len(self.dataset)) if i not in self.processed_indices]
        if self.shuffle:
            random.Random(f"{self.seed} {self.epoch}").shuffle(left)
        self.num_samples = math.ceil(len(left) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
        while left and len(left) < self.total_size:
            left += left[: self.total_size - len(left)]
        self.remaining_indices = left
        self.indices = left[self.rank :: self.num_replicas]

    def state_dict(self) -> dict[str, Any]:
        """The epoch, and the rows that are used."""
        return {"epoch": self.epoch, "processed_indices": set(self.processed_indices)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from a state_dict()."""
        self.epoch = state_dict["epoch"]
        self.processed_indices = set(state_dict["processed_indices"])
        self.reset()

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return self.num_samples
