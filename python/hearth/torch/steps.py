"""Training steps in which every rank takes part, whether it has rows at the moment or not."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

# How long a rank waits when no rank has rows, before they ask each other again.
_IDLE_S = 0.1
_END = object()


def in_step(batches: Iterable[Any], patience_s: float = 0.5) -> Iterator[tuple[Any, float]]:
    """Yields (minibatch, weight) on all ranks equally often, until the rows of all have ended.

        for batch, weight in in_step(feed.as_iterable_dataset(64)):
            loss = loss_of(model(batch["image"]), batch["label"])
            (loss * weight).backward()

    Spark gives one node more partitions than another, and a loop that takes rows and then meets
    the others in a collective would wait for a node that has none. Here the ranks tell each other
    before each step who has how many rows. One without repeats two old ones with the weight 0; the
    weights of the others are their share of the step's rows times the number of ranks, so that the
    mean over the ranks, as DistributedDataParallel takes it, is the mean over the rows.

    It costs one small all_gather a step. Without a process group every weight is 1.

    Args:
        batches: a dataset of a feed, or a DataLoader of one (batch_size=None): tensors, or tuples
            or dicts of them.
        patience_s: how long the others wait for a rank that has just run out of rows.

    Raises:
        TypeError: a minibatch is something else.
        ClusterError: a node of the cluster failed.
    """
    if not dist.is_initialized() or dist.get_world_size() == 1:
        for batch in batches:
            yield batch, 1.0
        return
    ahead = _Ahead(batches)
    example: Any = None  # what a rank without rows computes on
    dry = False
    while True:
        batch = ahead.take(0.0 if dry else patience_s)
        if batch is not None and example is None:
            example = _two_rows(batch)
        states = _exchange(_State(_rows(batch), ahead.ended, example is not None))
        total = sum(state.rows for state in states)
        dry = batch is None
        if total == 0:
            if all(state.ended for state in states):
                return
            ahead.wait(_IDLE_S)
            continue
        if not all(state.has_example for state in states):
            example = _share_example(example, [state.has_example for state in states])
        if batch is None:
            yield example, 0.0
        else:
            ahead.given()
            yield batch, _rows(batch) * len(states) / total


class _Ahead:
    """Takes minibatches in a thread of its own, each when it is asked for. One thread asks."""

    def __init__(self, batches: Iterable[Any]):
        self.ended = False
        self._feed = getattr(getattr(batches, "dataset", batches), "feed", None)
        self._wanted: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._found: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._is_asked = False
        self._batch: Any = None
        # A daemon: it may wait for rows when the program has ended.
        self._thread = threading.Thread(
            target=self._run, args=(batches,), name="hearth-ahead", daemon=True
        )
        self._thread.start()

    def take(self, wait_s: float) -> Any:
        """The next minibatch; None where it does not come in time, or all have ended."""
        self.wait(wait_s)
        return self._batch

    def given(self) -> None:
        """The program has the minibatch: the next take() is for another."""
        self._batch = None
        self._tell_feed(False)

    def wait(self, wait_s: float) -> None:
        """Waits until there is a minibatch, or it is known that there is none."""
        if self._batch is not None or self.ended:
            return
        if not self._is_asked:
            self._tell_feed(True)
            self._is_asked = True
            self._wanted.put(None)
        try:
            found = self._found.get(timeout=wait_s) if wait_s > 0 else self._found.get_nowait()
        except queue.Empty:
            return
        self._is_asked = False
        if isinstance(found, BaseException):
            raise found
        if found is _END:
            self.ended = True
            self._tell_feed(False)
        else:
            self._batch = found

    def _tell_feed(self, ahead: bool) -> None:
        if self._feed is not None:
            self._feed.ahead = ahead

    def _run(self, batches: Iterable[Any]) -> None:
        self._wanted.get()
        try:
            for batch in batches:
                self._found.put(batch)
                self._wanted.get()
            self._found.put(_END)
        except BaseException as error:
            self._found.put(error)


@dataclass(frozen=True)
class _State:
    """What a rank tells the others before a step."""

    rows: int
    ended: bool
    has_example: bool


def _exchange(own: _State) -> list[_State]:
    """Every rank's, by rank."""
    mine = torch.tensor([own.rows, own.ended, own.has_example], dtype=torch.int64).to(_device())
    every = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(every, mine)
    values = torch.stack(every).tolist()
    return [_State(rows, bool(ended), bool(example)) for rows, ended, example in values]


def _share_example(example: Any, have: list[bool]) -> Any:
    """Gives the first example that a rank has to those that have none; each rank's own stays."""
    source = have.index(True)
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
    return example if example is not None else _whole(names, received)


def _device() -> torch.device:
    """Where the process group wants its tensors."""
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


def _rows(batch: Any) -> int:
    return 0 if batch is None else len(_parts(batch)[1][0])


def _two_rows(batch: Any) -> Any:
    """Copies of two rows, for norms over a minibatch take no single one."""
    names, tensors = _parts(batch)
    rows = [torch.cat([t[:1], t[-1:]]).detach() for t in tensors]
    return _whole(names, rows)


def _parts(batch: Any) -> tuple[Any, list[Any]]:
    """(what _whole() makes it from, its tensors). Raises TypeError where it has others."""
    if isinstance(batch, dict):
        names, tensors = list(batch), list(batch.values())
    elif isinstance(batch, tuple | list):
        names, tensors = len(batch), list(batch)
    else:
        names, tensors = None, [batch]
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, torch.Tensor) or tensor.dim() == 0:
            what = names[number] if isinstance(names, list) else number
            raise TypeError(
                f"in_step() takes minibatches of tensors with a first dimension of rows, but part "
                f"{what!r} is a {type(tensor).__name__}: make it one in the dataset"
            )
    return names, tensors


def _whole(names: Any, tensors: list[Any]) -> Any:
    if names is None:
        return tensors[0]
    return tuple(tensors) if isinstance(names, int) else dict(zip(names, tensors, strict=True))
