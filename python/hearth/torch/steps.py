"""Training steps in which every rank participates, even if it has no rows at the moment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from hearth.ranks import steps
from hearth.torch.sharding import check_whole


def in_step(batches: Iterable[Any], patience_s: float = 0.5) -> Iterator[tuple[Any, float]]:
    """Yields (minibatch, weight) equally often on all ranks, until all ranks have run out of rows.

        for batch, weight in in_step(feed.as_iterable_dataset(64)):
            loss = loss_of(model(batch["image"]), batch["label"])
            (loss * weight).backward()

    Spark may send one node more partitions than another, so a loop that takes rows and then calls a
    collective operation would wait for a node without rows. Here the ranks exchange their numbers
    of rows before each step. A rank without rows repeats two old rows with weight 0. Any other
    rank's weight is its share of the step's rows times the number of ranks, so the mean over the
    ranks, which DistributedDataParallel computes, is the mean over the rows.

    Each step costs one small all_gather. Without a process group every weight is 1.

    Args:
        batches: a dataset of a feed, or a DataLoader of such a dataset (batch_size=None): tensors,
            or tuples or dicts of them.
        patience_s: how long to wait for a rank that has just run out of rows.

    Raises:
        TypeError: a minibatch has another type.
        RuntimeError: a framework would use only a part of the minibatches.
        ClusterError: a node of the cluster failed.
    """
    check_whole()  # checks this thread's callers, because another thread takes the rows
    if not dist.is_initialized() or dist.get_world_size() == 1:
        for batch in batches:
            yield batch, 1.0
        return
    yield from steps.in_step(batches, patience_s, _Tensors())


class _Tensors:
    """PyTorch's implementation of hearth.ranks.steps.Exchange."""

    def exchange_states(self, own: steps.State) -> list[steps.State]:
        mine = torch.tensor([own.rows, own.ended, own.has_example], dtype=torch.int64)
        mine = mine.to(_device())
        every = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(every, mine)
        values = torch.stack(every).tolist()
        return [steps.State(rows, bool(ended), bool(example)) for rows, ended, example in values]

    def rows(self, batch: Any) -> int:
        return len(_parts(batch)[1][0])

    def two_rows(self, batch: Any) -> Any:
        return _two_rows(batch)

    def share(self, example: Any, source: int) -> Any:
        return _share(example, source)


def _share(example: Any, source: int) -> Any:
    """Returns rank `source`'s example on ranks without an example, and `example` on others."""
    device = _device()
    names, tensors = _parts(example) if example is not None else (None, [])
    spec = [[str(t.dtype).removeprefix("torch."), list(t.shape)] for t in tensors]
    text = torch.frombuffer(bytearray(json.dumps([names, spec]).encode()), dtype=torch.uint8)
    length = torch.tensor([len(text)], device=device)
    dist.broadcast(length, source)
    if dist.get_rank() != source:
        text = torch.empty(int(length.item()), dtype=torch.uint8)
    text = text.to(device)
    dist.broadcast(text, source)
    names, spec = json.loads(bytes(text.tolist()))
    received = []
    for number, (kind, shape) in enumerate(spec):
        if dist.get_rank() == source:
            value = tensors[number].contiguous().to(device)
        else:
            value = torch.empty(shape, dtype=getattr(torch, kind), device=device)
        dist.broadcast(value.reshape(-1).view(torch.uint8), source)
        received.append(value.cpu())
    return example if example is not None else steps.whole_of(names, received)


def _device() -> torch.device:
    """The device whose tensors the process group accepts."""
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


def _two_rows(batch: Any) -> Any:
    """Copies of two rows, because batch normalization rejects a single row."""
    names, tensors = _parts(batch)
    rows = [torch.cat([t[:1], t[-1:]]).detach() for t in tensors]
    return steps.whole_of(names, rows)


def _parts(batch: Any) -> tuple[Any, list[Any]]:
    """(structure for whole_of(), tensors). Raises TypeError for other values."""
    names, tensors = steps.parts_of(batch)
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, torch.Tensor) or tensor.dim() == 0:
            what = names[number] if isinstance(names, list) else number
            raise TypeError(
                f"in_step() expects minibatches of tensors with a first dimension of rows, but "
                f"part {what!r} is a {type(tensor).__name__}: convert it in the dataset"
            )
    return names, tensors
