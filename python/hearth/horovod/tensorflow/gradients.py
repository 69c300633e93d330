"""Reduces gradients over the ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from hearth.errors import invalid
from hearth.horovod import reductions
from hearth.horovod.process_sets import ProcessSet, global_process_set
from hearth.horovod.tensorflow.compression import Compression
from hearth.horovod.tensorflow.operations import allreduce, grouped_allreduce


@dataclass
class Reduction:
    """The settings for reducing gradients; see DistributedOptimizer().

    Attributes:
        local: ids of variables whose gradients are not reduced.
        scales_local: whether gradients of `local` variables are divided by the number of ranks.
    """

    compression: Any = Compression.none
    sparse_as_dense: bool = False
    op: int = reductions.Average
    gradient_predivide_factor: float = 1.0
    process_set: ProcessSet = global_process_set
    scales_local: bool = True
    local: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.gradient_predivide_factor != 1.0 and self.op != reductions.Average:
            raise invalid("gradient_predivide_factor needs op=Average")

    def apply(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """The reduced gradients; None stays None, and must be None on all ranks."""
        results = list(gradients)
        if self.process_set.size() == 1 or not self.process_set.included():
            return results
        shared = []
        for i, (gradient, variable) in enumerate(zip(gradients, variables, strict=True)):
            if gradient is None:
                continue
            if id(variable) in self.local:
                if self.scales_local:
                    results[i] = gradient / tf.cast(self.process_set.size(), gradient.dtype)
                continue
            if self.sparse_as_dense and isinstance(gradient, tf.IndexedSlices):
                results[i] = tf.convert_to_tensor(gradient)
            shared.append(i)
        if shared:
            found = grouped_allreduce(
                [results[i] for i in shared],
                compression=self.compression,
                op=self.op,
                prescale_factor=1.0 / self.gradient_predivide_factor,
                postscale_factor=self.gradient_predivide_factor,
                process_set=self.process_set,
            )
            for i, gradient in zip(shared, found, strict=True):
                results[i] = gradient
        return results

    def all_finite(self, finite: Any) -> Any:
        """Whether the gradients of all ranks are finite, given whether this rank's are."""
        if self.process_set.size() == 1 or not self.process_set.included():
            return finite
        # Counts the ranks without finite gradients, because ranks that have joined add zeros.
        count = allreduce(
            1 - tf.cast(finite, tf.int32),
            op=reductions.Sum,
            name="gradients are not finite",
            process_set=self.process_set,
        )
        return tf.equal(count, 0)


if TYPE_CHECKING:
    from tensorflow import GradientTape as _Tape
else:  # in the MRO, GradientTape would precede a user's tape that does not derive from it
    _Tape = object


class _ReducingTape(_Tape):
    """Methods that are mixed into the class of a tape."""

    _reduction: Reduction

    def register_local_source(self, source: Any) -> None:
        """Registers a variable whose gradients are not reduced."""
        self._reduction.local.add(id(source))

    def gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        """tf.GradientTape.gradient(), reduced over the ranks."""
        found = super().gradient(target, sources, *args, **kwargs)
        # An IndexedSlices is one gradient, so it is not split into its components.
        flat = tf.nest.flatten(found, expand_composites=False)
        reduced = self._reduction.apply(flat, tf.nest.flatten(sources))
        return tf.nest.pack_sequence_as(found, reduced)


def DistributedGradientTape(
    gradtape: Any,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: int = reductions.Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """A tape with what `gradtape` has recorded; its gradient() returns the ranks' reduced
    gradients.

    Args:
        device_dense, device_sparse, num_groups, groups: ignored: all dense gradients of a call are
            reduced by one operation.
        Others: as for DistributedOptimizer().

    Raises:
        ValueError: gradient_predivide_factor without op=Average.
    """
    kind = type(gradtape)
    tape: Any = object.__new__(type(kind.__name__, (_ReducingTape, kind), {}))
    tape.__dict__.update(gradtape.__dict__)
    tape._reduction = Reduction(
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        process_set,
        scale_local_gradients,
    )
    return tape


def PartialDistributedGradientTape(
    gradtape: Any, *args: Any, local_layers: Any = None, **options: Any
) -> Any:
    """Like DistributedGradientTape(), but gradients of `local_layers`, a layer or a list of layers,
    are not reduced."""
    tape = DistributedGradientTape(gradtape, *args, **options)
    for variable in local_variables(local_layers):
        tape.register_local_source(variable)
    return tape


def local_variables(layers: Any) -> list[Any]:
    """The trainable variables of layers that each rank trains separately.

    Raises:
        ValueError: `layers` contains something other than layers.
    """
    several = [] if layers is None else layers if isinstance(layers, list | tuple) else [layers]
    for each in several:
        if not hasattr(each, "trainable_weights"):
            raise invalid(f"local_layers has {each!r}: pass layers of Keras")
    return [variable for layer in several for variable in layer.trainable_weights]
