"""Broadcasts parameters and an optimizer's state from rank 0 before training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from hearth.errors import invalid
from hearth.horovod import basics
from hearth.horovod.objects import broadcast_object
from hearth.horovod.process_sets import ProcessSet, global_process_set
from hearth.horovod.torch.asynchronous import broadcast_async_
from hearth.horovod.torch.handles import synchronize


def broadcast_parameters(
    params: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Sets parameters to those of rank `root_rank`.

    Args:
        params: a state_dict, or (name, tensor) pairs as in model.named_parameters().

    Raises:
        ValueError: `params` has another type.
        HorovodInternalError: names, types or shapes differ between the ranks, or a rank is lost.
    """
    pairs = list(params.items()) if isinstance(params, Mapping) else _pairs(params)
    tensors = [(name, tensor) for name, tensor in pairs if isinstance(tensor, Tensor)]
    _broadcast(tensors, root_rank, process_set)


def _broadcast(named: list[tuple[str, Tensor]], root_rank: int, process_set: ProcessSet) -> None:
    for handle in [broadcast_async_(each, root_rank, name, process_set) for name, each in named]:
        synchronize(handle)


def _pairs(params: Any) -> list[tuple[str, Tensor]]:
    if isinstance(params, Iterable):
        pairs = list(params)
        if all(isinstance(each, tuple) and len(each) == 2 for each in pairs):
            return pairs
    raise invalid(
        f"broadcast_parameters() expects a state_dict or (name, tensor) pairs, not a "
        f"{type(params).__name__} of other values"
    )


class _Tensor:
    """A placeholder for a tensor in a pickled state."""

    def __init__(self, number: int, tensor: Tensor):
        self.number = number
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype


def broadcast_optimizer_state(
    optimizer: Any,
    root_rank: int,
    model: Any = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Copies the optimizer's state of rank `root_rank` to all ranks, even to ranks without a state.

    Args:
        model: ignored.

    Raises:
        ValueError: `optimizer` is torch.optim.LBFGS, whose state is not kept per parameter.
        HorovodInternalError: a rank was lost.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise invalid("broadcast_optimizer_state() does not support torch.optim.LBFGS")
    is_root = basics.rank() == root_rank
    tensors: list[Tensor] = []
    shape = _taken_apart(optimizer.state_dict(), tensors) if is_root else None
    shape = broadcast_object(shape, root_rank, process_set=process_set)
    if not is_root:
        state = _put_together(shape, tensors)
    named = [(f"optimizer_state.{number}", tensor) for number, tensor in enumerate(tensors)]
    _broadcast(named, root_rank, process_set)
    if not is_root:
        optimizer.load_state_dict(state)


def _taken_apart(value: Any, tensors: list[Tensor]) -> Any:
    """The value with placeholders for its tensors, which are appended to `tensors`."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return _Tensor(len(tensors) - 1, value)
    if isinstance(value, Mapping):
        return {key: _taken_apart(each, tensors) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_taken_apart(each, tensors) for each in value)
    return value


def _put_together(value: Any, tensors: list[Tensor]) -> Any:
    """The value with new tensors for its placeholders; appends the tensors to `tensors` in the
    order of the placeholders' numbers."""
    if isinstance(value, _Tensor):
        tensors.append(torch.zeros(value.shape, dtype=value.dtype))
        return tensors[-1]
    if isinstance(value, dict):
        return {key: _put_together(each, tensors) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_put_together(each, tensors) for each in value)
    return value
