"""Keras optimizers that apply the ranks' reduced gradients."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hearth.errors import invalid
from hearth.horovod import reductions
from hearth.horovod.process_sets import ProcessSet, global_process_set
from hearth.horovod.tensorflow.compression import Compression
from hearth.horovod.tensorflow.gradients import Reduction
from hearth.tensorflow.optimizer_methods import (
    METHODS,
    decide_together,
    innermost,
    method_of,
    replace_method,
)

_MARK = "_by_hearth_horovod"


def DistributedOptimizer(
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = reductions.Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
    use_locking: bool = False,
) -> Any:
    """Makes a Keras optimizer apply the ranks' reduced gradients, and returns it.

    It remains the same object, so a saved model loads with the plain optimizer. Under mixed_float16
    all ranks apply a step, or none does.

    Args:
        optimizer: an optimizer of Keras 3 on TensorFlow, or of tf_keras.
        compression: Compression.none or Compression.fp16.
        sparse_as_dense: convert tf.IndexedSlices to dense tensors; otherwise gather the slices of
            all ranks.
        gradient_predivide_factor: with Average: gradients are divided by this factor before they
            are added, and the sum by the number of ranks divided by this factor.
        op: Average, Sum or Adasum.
        backward_passes_per_step: number of gradients to add up before they are reduced and applied;
            with average_aggregated_gradients, their mean is applied.
        scale_local_gradients: divide gradients of register_local_var() variables by the number of
            ranks.
        name, device_dense, device_sparse, num_groups, groups, use_locking: ignored.

    Raises:
        ValueError: arguments are mutually exclusive, or the optimizer is distributed already.
        TypeError: not a Keras optimizer.
    """
    target = innermost(optimizer)
    method = method_of(target, _MARK)
    predivide = gradient_predivide_factor
    reduction = Reduction(
        compression, sparse_as_dense, op, predivide, process_set, scale_local_gradients
    )
    if method == "apply":
        decide_together(target, reduction.all_finite)
    own = getattr(target, method).__func__
    if backward_passes_per_step > 1:
        if method != "apply":
            raise invalid("backward_passes_per_step > 1 needs an optimizer of Keras 3")
        step = _Accumulating(reduction, backward_passes_per_step, average_aggregated_gradients)
        changed = step.changed(own)
    else:
        changed = METHODS[method](own, reduction.apply)
    replace_method(target, method, changed, _MARK)
    object.__setattr__(target, "register_local_var", lambda each: reduction.local.add(id(each)))
    return optimizer


class _Accumulating:
    """The replacement of an optimizer's apply(): adds up gradients, and reduces and applies the
    sums every `passes` calls."""

    def __init__(self, reduction: Reduction, passes: int, averages: bool):
        self._reduction, self._passes, self._averages = reduction, passes, averages
        self._sums: list[Any] = []
        self._count: Any = None

    def changed(self, own: Any) -> Any:
        """The optimizer's new apply()."""

        def apply(optimizer: Any, grads: Any, trainable_variables: Any = None) -> None:
            variables = trainable_variables
            if variables is None:
                variables = optimizer._trainable_variables
            variables, gradients = list(variables), [tf.convert_to_tensor(g) for g in grads]
            if self._count is None:
                with tf.init_scope():
                    if not optimizer.built:
                        optimizer.build(variables)
                    self._count = tf.Variable(0, trainable=False)
                    self._sums = [tf.Variable(tf.zeros(v.shape, v.dtype)) for v in variables]
            for total, gradient in zip(self._sums, gradients, strict=True):
                total.assign_add(gradient)

            def step() -> Any:
                scale = 1.0 / self._passes if self._averages else 1.0
                totals = [total * tf.cast(scale, total.dtype) for total in self._sums]
                own(optimizer, self._reduction.apply(totals, variables), trainable_variables)
                for total in self._sums:
                    total.assign(tf.zeros_like(total))
                return tf.constant(True)

            due = self._count.assign_add(1) % self._passes == 0
            tf.cond(due, step, lambda: tf.constant(False))

        return apply
