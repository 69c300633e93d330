"""Blocking, differentiable operations on tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hearth.horovod import current, reductions
from hearth.horovod.process_sets import ProcessSet, global_process_set
from hearth.horovod.torch import asynchronous
from hearth.horovod.torch.compression import Compression
from hearth.horovod.torch.handles import synchronize

_Function: Any = torch.autograd.Function


class _Allreduce(_Function):
    @staticmethod
    def forward(ctx: Any, options: dict[str, Any], name: str | None, *tensors: Tensor) -> Any:
        ctx.options = options
        handle = asynchronous.grouped_allreduce_async(tensors, name=name, **options)
        return tuple(synchronize(handle))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        found = _Allreduce.apply(ctx.options, None, *gradients)
        return None, None, *found


class _Allgather(_Function):
    @staticmethod
    def forward(
        ctx: Any, process_set: ProcessSet, name: str | None, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.process_set = process_set
        ctx.shapes = [tensor.shape for tensor in tensors]
        handle = asynchronous.grouped_allgather_async(tensors, name, process_set)
        return tuple(synchronize(handle))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        process_set = ctx.process_set
        means = grouped_allreduce(gradients, op=reductions.Average, process_set=process_set)
        rows = torch.tensor([[shape[0] if shape else 1 for shape in ctx.shapes]])
        every = allgather(rows, process_set=process_set)
        starts = every[: process_set.rank()].sum(0).tolist()
        parts = [
            mean.narrow(0, start, count).reshape(shape)
            for mean, start, count, shape in zip(
                means, starts, rows[0].tolist(), ctx.shapes, strict=True
            )
        ]
        return None, None, *parts


class _Broadcast(_Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, root: int, name: str | None, of: ProcessSet) -> Tensor:
        ctx.root, ctx.process_set = root, of
        return synchronize(asynchronous.broadcast_async(tensor, root, name, of))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        mean = allreduce(gradient, op=reductions.Average, process_set=ctx.process_set)
        if current.engine().rank != ctx.root:
            mean = torch.zeros_like(mean)
        return mean, None, None, None


class _Alltoall(_Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, splits: Any, name: str | None, of: ProcessSet) -> Any:
        if splits is None:
            members = of.size() or 1
            splits = asynchronous._splits(tensor, None, members)
        handle = asynchronous.alltoall_async(tensor, splits, name, of)
        rows, received = synchronize(handle)
        ctx.received, ctx.process_set = received, of
        ctx.mark_non_differentiable(received)
        return rows, received

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> Any:
        found, _ = alltoall(gradient, ctx.received, process_set=ctx.process_set)
        return found, None, None, None


class _Reducescatter(_Function):
    @staticmethod
    def forward(ctx: Any, options: dict[str, Any], name: str | None, *tensors: Tensor) -> Any:
        ctx.options = options
        return tuple(
            synchronize(asynchronous.grouped_reducescatter_async(tensors, name, **options))
        )

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        options = ctx.options
        process_set = options["process_set"]
        factor = options["prescale_factor"] * options["postscale_factor"]
        if options["op"] == reductions.Sum:
            factor *= process_set.size()
        scaled = [gradient * factor for gradient in gradients]
        return None, None, *grouped_allgather(scaled, process_set=process_set)


def allreduce(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Reduces a tensor over the ranks by `op`: Average, Sum, Adasum, Min, Max or Product.

    Args:
        average: instead of `op`: True is Average, False Sum.
        name: the name by which ranks match the operation; None: unnamed operations are matched by
            order.
        prescale_factor, postscale_factor: factors applied before and after the reduction.

    Raises:
        ValueError: op and average were both given, or the name is in flight.
        HorovodInternalError: types, shapes or reductions differ between the ranks, or a rank is
            lost.
    """
    if tensor.is_sparse:
        chosen = reductions.chosen(op, average)
        handle = asynchronous.sparse_allreduce_async(tensor, name, chosen, process_set)
        return synchronize(handle)
    compressed, ctx = compression.compress(tensor)
    options = _options(average, op, prescale_factor, postscale_factor, process_set)
    [found] = _Allreduce.apply(options, name, compressed)
    return compression.decompress(found, ctx)


def allreduce_(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """allreduce() in place; returns the tensor."""
    options = _options(average, op, prescale_factor, postscale_factor, process_set)
    return synchronize(asynchronous.allreduce_async_(tensor, name=name, **options))


def grouped_allreduce(
    tensors: Sequence[Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """allreduce() of several tensors in one operation."""
    pairs = [compression.compress(tensor) for tensor in tensors]
    options = _options(average, op, prescale_factor, postscale_factor, process_set)
    found = _Allreduce.apply(options, name, *[tensor for tensor, _ in pairs])
    return [compression.decompress(each, ctx) for each, (_, ctx) in zip(found, pairs, strict=True)]


def grouped_allreduce_(
    tensors: Sequence[Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """grouped_allreduce() in place; returns the tensors."""
    options = _options(average, op, prescale_factor, postscale_factor, process_set)
    return synchronize(asynchronous.grouped_allreduce_async_(tensors, name=name, **options))


def allgather(
    tensor: Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Tensor:
    """Concatenates the ranks' tensors along the first dimension, whose length may differ; scalars
    become a vector.

    Raises:
        ValueError: the name is in flight.
        HorovodInternalError: types or other dimensions differ, or a rank is lost.
    """
    [found] = _Allgather.apply(process_set, name, tensor)
    return found


def grouped_allgather(
    tensors: Sequence[Tensor],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Tensor]:
    """allgather() of several tensors in one operation."""
    return list(_Allgather.apply(process_set, name, *tensors))


def broadcast(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """The tensor of global rank `root_rank`.

    Raises:
        ValueError: `root_rank` is not in the process set, or the name is in flight.
        HorovodInternalError: types, shapes or roots differ between the ranks, or a rank is lost.
    """
    return _Broadcast.apply(tensor, root_rank, name, process_set)


def broadcast_(
    tensor: Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """broadcast() in place; returns the tensor."""
    return synchronize(asynchronous.broadcast_async_(tensor, root_rank, name, process_set))


def alltoall(
    tensor: Tensor,
    splits: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The rows received from all ranks; with `splits`, (rows, number of rows from each rank).

    Raises:
        ValueError: see alltoall_async(). HorovodInternalError: as allgather().
    """
    rows, received = _Alltoall.apply(tensor, splits, name, process_set)
    return rows if splits is None else (rows, received)


def reducescatter(
    tensor: Tensor,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int = reductions.Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Tensor:
    """This rank's rows of the reduced tensor; the first ranks get one more row if necessary.

    Raises:
        ValueError: `op` is neither Average nor Sum, or the tensor is a scalar.
        HorovodInternalError: as allreduce().
    """
    [found] = grouped_reducescatter(
        [tensor], name, compression, op, process_set, prescale_factor, postscale_factor
    )
    return found


def grouped_reducescatter(
    tensors: Sequence[Tensor],
    name: str | None = None,
    compression: Any = Compression.none,
    op: int = reductions.Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Tensor]:
    """reducescatter() of several tensors in one operation."""
    options = {
        "op": op,
        "process_set": process_set,
        "prescale_factor": prescale_factor,
        "postscale_factor": postscale_factor,
    }
    pairs = [compression.compress(tensor) for tensor in tensors]
    found = _Reducescatter.apply(options, name, *[tensor for tensor, _ in pairs])
    return [compression.decompress(each, ctx) for each, (_, ctx) in zip(found, pairs, strict=True)]


def _options(
    average: bool | None, op: int | None, before: float, after: float, process_set: ProcessSet
) -> dict[str, Any]:
    return {
        "op": reductions.chosen(op, average),
        "prescale_factor": before,
        "postscale_factor": after,
        "process_set": process_set,
    }
