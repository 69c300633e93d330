"""Asynchronous operations on tensors, which return a handle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from hearth.errors import invalid
from hearth.horovod import calls, reductions
from hearth.horovod.process_sets import ProcessSet, global_process_set
from hearth.horovod.torch.handles import Handle, submit
from hearth.horovod.torch.tensors import is_shared, tensor_of


def allreduce_async(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Reduces a tensor over the ranks; synchronize() returns the result.

    Raises:
        ValueError: both op and average were given, or the name is in flight.
    """
    how = _reduction(average, op, prescale_factor, postscale_factor, process_set)
    return _allreduce([tensor], name, how, process_set, in_place=False, single=True)


def allreduce_async_(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """allreduce_async() in place. Do not use the tensor until synchronize()."""
    how = _reduction(average, op, prescale_factor, postscale_factor, process_set)
    return _allreduce([tensor], name, how, process_set, in_place=True, single=True)


def grouped_allreduce_async(
    tensors: Sequence[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """allreduce_async() of several tensors in one operation."""
    how = _reduction(average, op, prescale_factor, postscale_factor, process_set)
    return _allreduce(list(tensors), name, how, process_set, in_place=False, single=False)


def grouped_allreduce_async_(
    tensors: Sequence[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """grouped_allreduce_async() in place."""
    how = _reduction(average, op, prescale_factor, postscale_factor, process_set)
    return _allreduce(list(tensors), name, how, process_set, in_place=True, single=False)


def sparse_allreduce_async(
    tensor: Tensor,
    name: str | None = None,
    op: int = reductions.Average,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Adds sparse tensors: gathers the indices and values of all ranks.

    Raises:
        ValueError: `op` is neither Average nor Sum.
    """
    if op not in (reductions.Average, reductions.Sum):
        raise invalid("sparse tensors can be reduced by op=Average or op=Sum only")
    tensor = tensor.coalesce()
    # Transposes the indices, because ranks may differ only in the first dimension.
    parts = [tensor.indices().t().contiguous(), tensor.values()]
    members = calls.size_of(process_set)

    def finish(arrays: Any) -> Tensor:
        indices, values = (
            tensor_of(array, like) for array, like in zip(arrays, parts, strict=True)
        )
        if op == reductions.Average:
            values = values / members
        return torch.sparse_coo_tensor(indices.t(), values, tensor.shape).coalesce()

    return submit({"kind": "allgather"}, name, parts, process_set, finish)


def allgather_async(
    tensor: Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Handle:
    """Concatenates the ranks' tensors along the first dimension, whose length may differ."""
    own = _rows(tensor)
    return submit({"kind": "allgather"}, name, [own], process_set, _first(own))


def grouped_allgather_async(
    tensors: Sequence[Tensor],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """allgather_async() of several tensors in one operation."""
    own = [_rows(tensor) for tensor in tensors]
    return submit({"kind": "allgather"}, name, own, process_set, _all(own))


def broadcast_async(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Copies the tensor of global rank `root_rank` to all ranks; synchronize() returns it.

    Raises:
        ValueError: `root_rank` is not in the process set.
    """
    call = _broadcast(root_rank, process_set)
    copy = _own(tensor)
    return submit(call, name, [copy], process_set, lambda _: copy.to(tensor.device))


def broadcast_async_(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """broadcast_async() in place."""
    call = _broadcast(root_rank, process_set)
    return submit(call, name, [tensor], process_set, _into([tensor], single=True))


def alltoall_async(
    tensor: Tensor,
    splits: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Sends each rank its rows of the tensor; synchronize() returns the received rows.

    Args:
        splits: number of rows for each rank, a list or an integer tensor; synchronize() then
            returns (rows, number of rows from each rank). None: equal numbers.

    Raises:
        ValueError: the splits do not add up to the rows, or the rows cannot be divided equally.
    """
    members = calls.size_of(process_set)
    sent = _splits(tensor, splits, members)
    call = {"kind": "alltoall", "splits": sent}

    def finish(arrays: Any) -> Any:
        rows = tensor_of(arrays[0], tensor)
        return rows if splits is None else (rows, torch.from_numpy(arrays[1]))

    return submit(call, name, [tensor], process_set, finish)


def reducescatter_async(
    tensor: Tensor,
    name: str | None = None,
    op: int = reductions.Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle:
    """Reduces a tensor; synchronize() returns this rank's rows of the result.

    Raises:
        ValueError: `op` is neither Average nor Sum, or the tensor is a scalar.
    """
    how = _scatter(op, prescale_factor, postscale_factor, process_set)
    own = _own(_with_rows(tensor))
    return submit(how, name, [own], process_set, _first(tensor))


def grouped_reducescatter_async(
    tensors: Sequence[Tensor],
    name: str | None = None,
    op: int = reductions.Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle:
    """reducescatter_async() of several tensors in one operation."""
    how = _scatter(op, prescale_factor, postscale_factor, process_set)
    own = [_own(_with_rows(tensor)) for tensor in tensors]
    return submit(how, name, own, process_set, _all(list(tensors)))


def _allreduce(
    inputs: list[Tensor],
    name: str | None,
    how: dict[str, Any],
    process_set: ProcessSet,
    *,
    in_place: bool,
    single: bool,
) -> Handle:
    call = {"kind": "allreduce", **how}
    if in_place:
        return submit(call, name, inputs, process_set, _into(inputs, single))
    copies = [_own(tensor) for tensor in inputs]

    def finish(_: Any) -> Any:
        outputs = [copy.to(own.device) for copy, own in zip(copies, inputs, strict=True)]
        return outputs[0] if single else outputs

    return submit(call, name, copies, process_set, finish)


def _reduction(
    average: bool | None, op: int | None, before: float, after: float, process_set: ProcessSet
) -> dict[str, Any]:
    chosen = reductions.chosen(op, average)
    return reductions.reduction(chosen, before, after, calls.size_of(process_set))


def _scatter(op: int, before: float, after: float, process_set: ProcessSet) -> dict[str, Any]:
    calls.check_scatter(op)
    how = _reduction(None, op, before, after, process_set)
    return {"kind": "reducescatter", **how}


def _broadcast(root_rank: int, process_set: ProcessSet) -> dict[str, Any]:
    calls.check_root(root_rank, process_set)
    return {"kind": "broadcast", "root": root_rank}


def _splits(tensor: Tensor, splits: Any, members: int) -> list[int]:
    if isinstance(splits, Tensor):
        if splits.is_floating_point() or splits.dim() != 1:
            raise invalid("alltoall: splits must be a vector of integers, one for each rank")
        splits = splits.tolist()
    return calls.splits_of(len(_with_rows(tensor)), splits, members)


def _with_rows(tensor: Tensor) -> Tensor:
    if tensor.dim() == 0:
        raise invalid(calls.NO_ROWS)
    return tensor


def _rows(tensor: Tensor) -> Tensor:
    return tensor.reshape(1) if tensor.dim() == 0 else tensor


def _own(tensor: Tensor) -> Tensor:
    """A contiguous copy on the CPU."""
    copy = torch.empty(tensor.shape, dtype=tensor.dtype)
    return copy.copy_(tensor.detach())


def _into(outputs: list[Tensor], single: bool) -> Callable[[Any], Any]:
    """Copies results to tensors whose memory the engine could not use directly."""

    def finish(arrays: Any) -> Any:
        with torch.no_grad():
            for array, output in zip(arrays, outputs, strict=True):
                if not is_shared(array, output):
                    output.copy_(tensor_of(array, output))
        return outputs[0] if single else outputs

    return finish


def _first(like: Tensor) -> Callable[[Any], Tensor]:
    return lambda arrays: tensor_of(arrays[0], like)


def _all(likes: Sequence[Tensor]) -> Callable[[Any], list[Tensor]]:
    return lambda arrays: [tensor_of(a, b) for a, b in zip(arrays, likes, strict=True)]


__all__ = [
    "allgather_async",
    "allreduce_async",
    "allreduce_async_",
    "alltoall_async",
    "broadcast_async",
    "broadcast_async_",
    "grouped_allgather_async",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter_async",
    "reducescatter_async",
    "sparse_allreduce_async",
]
