"""A sampler that redistributes the remaining rows of an epoch when the ranks change."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from torch.utils.data import Sampler

from hearth.horovod import basics
from hearth.horovod.objects import allgather_object


class ElasticSampler(Sampler[int]):
    """A sampler that distributes a dataset's rows among the ranks; after a reset, the remaining
    rows of the epoch."""

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0):
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_indices: set[int] = set()
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Starts an epoch with all rows."""
        self.epoch = epoch
        self.processed_indices = set()
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Marks the rows of this rank's minibatch `batch_idx` as processed."""
        self.record_indices(self.get_indices(batch_idx, batch_size))

    def record_indices(self, indices: Any) -> None:
        """Marks these rows as processed."""
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx: int, batch_size: int) -> list[int]:
        """The rows of a minibatch."""
        start = batch_idx * batch_size
        return self.indices[start : start + batch_size]

    def sync(self) -> None:
        """Collects the rows that any rank has processed."""
        states = allgather_object(self.state_dict())
        self.processed_indices = set().union(*(each["processed_indices"] for each in states))
        self.epoch = states[0]["epoch"]
        self.reset()

    def reset(self) -> None:
        """Distributes the remaining rows among the ranks; some are repeated for equal lengths."""
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
        """The epoch, and the processed rows."""
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
