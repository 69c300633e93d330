"""Differentiable collective operations on TensorFlow's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hearth.errors import UnimplementedError, invalid
from hearth.horovod import calls, current, reductions
from hearth.horovod.process_sets import ProcessSet, global_process_set
from hearth.horovod.tensorflow.carrier import carry
from hearth.horovod.tensorflow.compression import Compression


def allreduce(
    tensor: Any,
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
) -> Any:
    """Reduces a tensor over the ranks by `op`: Average, Sum, Adasum, Min, Max or Product.

    Args:
        tensor: a tensor, a variable, or tf.IndexedSlices, for which all ranks' slices are returned.
        average: instead of `op`: True is Average, False Sum.
        device_dense, device_sparse, ignore_name_scope: ignored.
        name: the name by which ranks match the operation; None: unnamed operations are matched by
            order.
        prescale_factor, postscale_factor: factors applied before and after the reduction.

    Raises:
        ValueError: op and average were both given, or the name is in flight.
        NotImplementedError: tf.IndexedSlices with an op other than Average and Sum.
        tf.errors.FailedPreconditionError: the ranks disagree, or a rank is lost; in a graph another
            tf.errors.OpError.
    """
    chosen = reductions.chosen(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        return _slices(tensor, chosen, name, process_set)
    scale = (prescale_factor, postscale_factor)
    return _reduced([tensor], chosen, scale, (name, process_set, compression))[0]


def grouped_allreduce(
    tensors: Sequence[Any],
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    name: str | None = None,
) -> list[Any]:
    """allreduce() of several tensors; the dense ones in one operation."""
    chosen = reductions.chosen(op, average)
    results = list(tensors)
    dense = [i for i, each in enumerate(results) if not isinstance(each, tf.IndexedSlices)]
    scale = (prescale_factor, postscale_factor)
    if dense:
        given = [results[i] for i in dense]
        found = _reduced(given, chosen, scale, (name, process_set, compression))
        for i, tensor in zip(dense, found, strict=True):
            results[i] = tensor
    for i, each in enumerate(results):
        if isinstance(each, tf.IndexedSlices):
            results[i] = _slices(each, chosen, f"{name}.{i}" if name else None, process_set)
    return results


def allgather(
    tensor: Any,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Concatenates the ranks' tensors along the first dimension, whose length may differ; scalars
    become a vector.

    Raises as allreduce().
    """
    return grouped_allgather([tensor], name, ignore_name_scope, process_set)[0]


def grouped_allgather(
    tensors: Sequence[Any],
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """allgather() of several tensors in one operation."""

    @tf.custom_gradient
    def run(*inputs: Any) -> Any:
        found = carry({"kind": "allgather"}, name, inputs, process_set)
        for result, own in zip(found, inputs, strict=True):
            result.set_shape([None, *own.shape[1:]])

        def gradient(*upstream: Any) -> Any:
            own = tf.stack([tf.shape(each)[0] for each in inputs])[None]
            every = carry({"kind": "allgather"}, None, [own], process_set)[0]
            every = tf.ensure_shape(every, [calls.size_of(process_set), len(inputs)])
            means = grouped_allreduce(upstream, op=reductions.Average, process_set=process_set)
            parts = [tf.split(mean, every[:, i]) for i, mean in enumerate(means)]
            return [part[process_set.rank()] for part in parts]

        return found, gradient

    rows = [tf.convert_to_tensor(tensor) for tensor in tensors]
    return list(run(*[each[None] if each.shape.rank == 0 else each for each in rows]))


def broadcast(
    tensor: Any,
    root_rank: int,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The tensor of global rank `root_rank`.

    Raises ValueError if that rank is not in the process set, and the errors of allreduce().
    """
    calls.check_root(root_rank, process_set)

    @tf.custom_gradient
    def run(own: Any) -> Any:
        [found] = carry({"kind": "broadcast", "root": root_rank}, name, [own], process_set)
        found.set_shape(own.shape)

        def gradient(upstream: Any) -> Any:
            mean = allreduce(upstream, op=reductions.Average, process_set=process_set)
            return mean if current.engine().rank == root_rank else tf.zeros_like(mean)

        return found, gradient

    return run(tf.convert_to_tensor(tensor))


def broadcast_(
    variables: Sequence[Any],
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Sets variables to those of rank `root_rank`, in one operation; returns them."""
    calls.check_root(root_rank, process_set)
    plain = [getattr(each, "value", each) for each in variables]
    tensors = [tf.convert_to_tensor(each() if callable(each) else each) for each in plain]
    call = {"kind": "broadcast", "root": root_rank}
    for variable, value in zip(variables, carry(call, name, tensors, process_set), strict=True):
        variable.assign(tf.ensure_shape(value, variable.shape))
    return list(variables)


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The rows received from all ranks; with `splits`, (rows, number of rows from each rank).

    Args:
        splits: number of rows for each rank; None: equal numbers.

    Raises:
        ValueError: the splits do not add up to the rows; in a graph tf.errors.InvalidArgumentError.
        And as allreduce().
    """
    members = calls.size_of(process_set)

    def more(values: list[Any]) -> dict[str, Any]:
        return {"splits": _splits(values[0].shape, values[1], members)}

    @tf.custom_gradient
    def run(own: Any, sent: Any) -> Any:
        rows, received = carry({"kind": "alltoall"}, name, [own, sent], process_set, more)
        rows.set_shape([None, *own.shape[1:]])
        received.set_shape([members])

        def gradient(upstream: Any, _: Any) -> Any:
            return alltoall(upstream, received, process_set=process_set)[0], None

        return (rows, received), gradient

    own = tf.convert_to_tensor(tensor)
    sent = tf.constant([-1]) if splits is None else tf.convert_to_tensor(splits)
    rows, received = run(own, sent)
    return rows if splits is None else (rows, received)


def reducescatter(
    tensor: Any,
    device_dense: str = "",
    compression: Any = Compression.none,
    op: int = reductions.Average,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """This rank's rows of the reduced tensor; the first ranks get one more row if necessary.

    Raises ValueError if `op` is neither Average nor Sum, and the errors of allreduce().
    """
    return grouped_reducescatter(
        [tensor],
        compression=compression,
        op=op,
        process_set=process_set,
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
        name=name,
    )[0]


def grouped_reducescatter(
    tensors: Sequence[Any],
    device_dense: str = "",
    compression: Any = Compression.none,
    op: int = reductions.Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
) -> list[Any]:
    """reducescatter() of several tensors in one operation."""
    calls.check_scatter(op)
    size = calls.size_of(process_set)
    call = reductions.reduction(op, prescale_factor, postscale_factor, size)
    factor = prescale_factor * postscale_factor * (size if op == reductions.Sum else 1)

    @tf.custom_gradient
    def run(*inputs: Any) -> Any:
        found = carry({"kind": "reducescatter", **call}, name, inputs, process_set)
        for result, own in zip(found, inputs, strict=True):
            result.set_shape([None, *own.shape[1:]])

        def gradient(*upstream: Any) -> Any:
            scaled = [each * tf.cast(factor, each.dtype) for each in upstream]
            return grouped_allgather(scaled, process_set=process_set)

        return found, gradient

    pairs = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors]
    if any(tensor.shape.rank == 0 for tensor, _ in pairs):
        raise invalid(calls.NO_ROWS)
    found = run(*[tensor for tensor, _ in pairs])
    return [compression.decompress(each, ctx) for each, (_, ctx) in zip(found, pairs, strict=True)]


def _reduced(
    tensors: Sequence[Any], op: int, scale: tuple[float, float], more: tuple[Any, Any, Any]
) -> list[Any]:
    name, process_set, compression = more
    call = {"kind": "allreduce", **reductions.reduction(op, *scale, calls.size_of(process_set))}

    @tf.custom_gradient
    def run(*inputs: Any) -> Any:
        found = carry(call, name, inputs, process_set)
        for result, own in zip(found, inputs, strict=True):
            result.set_shape(own.shape)

        def gradient(*upstream: Any) -> Any:
            return _reduced(upstream, op, scale, (None, process_set, Compression.none))

        return found, gradient

    pairs = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors]
    found = run(*[tensor for tensor, _ in pairs])
    return [compression.decompress(each, ctx) for each, (_, ctx) in zip(found, pairs, strict=True)]


def _slices(slices: Any, op: int, name: str | None, process_set: ProcessSet) -> Any:
    if op not in (reductions.Average, reductions.Sum):
        raise UnimplementedError("tf.IndexedSlices can be reduced by op=Average or op=Sum only")
    pair = [slices.values, slices.indices]
    values, indices = grouped_allgather(pair, name, process_set=process_set)
    if op == reductions.Average:
        values = values / tf.cast(calls.size_of(process_set), values.dtype)
    return tf.IndexedSlices(values, indices, slices.dense_shape)


def _splits(shape: Sequence[int], splits: Any, members: int) -> list[int]:
    if not shape:
        raise invalid(calls.NO_ROWS)
    sent = [int(each) for each in splits]
    return calls.splits_of(shape[0], None if sent == [-1] else sent, members)
