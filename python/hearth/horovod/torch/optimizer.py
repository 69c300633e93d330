"""DistributedOptimizer: an optimizer whose gradients are reduced over the ranks.

Each gradient is submitted as soon as backward has computed it, in an order that may differ between
ranks. step() waits for all gradients.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hearth.errors import invalid
from hearth.horovod import basics, reductions
from hearth.horovod.process_sets import ProcessSet, global_process_set
from hearth.horovod.torch import asynchronous
from hearth.horovod.torch.adasum import AdasumSteps
from hearth.horovod.torch.compression import Compression
from hearth.horovod.torch.groups import named, partition
from hearth.horovod.torch.handles import synchronize

if TYPE_CHECKING:
    _Optimizer = torch.optim.Optimizer
else:  # in the MRO, Optimizer would precede a user's class that does not derive from it
    _Optimizer = object


class _Reducing(_Optimizer):
    """Methods that are mixed into the class of the user's optimizer."""

    def _begin(self, parameters: list[tuple[str, Tensor]], options: dict[str, Any]) -> None:
        self._names = {id(parameter): name for name, parameter in parameters}
        self._options = options
        self._passes = options["backward_passes_per_step"]
        self._groups = partition(options["groups"], [p for _, p in parameters])
        # By a parameter's id: the parameter, the handle in flight, and the context to decompress
        # the result.
        self._in_flight: dict[int, tuple[Tensor, Any, Any]] = {}
        self._group_handles: list[Any] = []
        self._submitted_in_groups: set[int] = set()
        self._ready: dict[int, Tensor] = {}
        self._delays: dict[int, int] = {}
        self._synchronized = False
        self._synchronizes = True
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(self._on_gradient)
            for _, parameter in parameters
            if parameter.requires_grad
        ]
        self._reset_delays()

    def _is_alone(self) -> bool:
        process_set = self._options["process_set"]
        return basics.size() == 1 or not process_set.included()

    def _parameters(self) -> Iterator[Tensor]:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad:
                    yield parameter

    def _reset_delays(self) -> None:
        self._delays = {id(parameter): self._passes for parameter in self._parameters()}

    def _on_gradient(self, parameter: Tensor) -> None:
        if self._is_alone() or id(parameter) not in self._delays:
            return
        if self._delays[id(parameter)] <= 0 or self._is_submitted(parameter):
            raise AssertionError(
                f"the gradient of '{self._names.get(id(parameter))}' was computed more than "
                f"backward_passes_per_step={self._passes} times before step() or synchronize(): "
                "call one of them, or increase backward_passes_per_step"
            )
        self._delays[id(parameter)] -= 1
        if self._delays[id(parameter)] == 0:
            self._submit(parameter)

    def _is_submitted(self, parameter: Tensor) -> bool:
        number = id(parameter)
        return number in self._in_flight or number in self._submitted_in_groups

    def _submit(self, parameter: Tensor) -> None:
        group = self._groups.get(id(parameter))
        if group is None:
            self._in_flight[id(parameter)] = self._reduced(parameter)
            return
        self._ready[id(parameter)] = parameter
        number, members = group
        members = [p for p in members if id(p) in self._delays]
        if all(id(member) in self._ready for member in members):
            self._submit_group(number, members)

    def _submit_group(self, number: int, members: list[Tensor]) -> None:
        pairs = [self._options["compression"].compress(member.grad) for member in members]
        handle = asynchronous.grouped_allreduce_async_(
            [tensor for tensor, _ in pairs], name=f"group.{number}", **self._how()
        )
        self._group_handles.append((members, handle, [ctx for _, ctx in pairs]))
        for member in members:
            self._submitted_in_groups.add(id(member))
            del self._ready[id(member)]

    def _how(self) -> dict[str, Any]:
        op, divisor = self._options["op"], self._options["gradient_predivide_factor"]
        return {
            "op": op,
            "prescale_factor": 1.0 / divisor,
            "postscale_factor": divisor,
            "process_set": self._options["process_set"],
        }

    def _reduced(self, parameter: Tensor) -> tuple[Tensor, Any, Any]:
        name = self._names.get(id(parameter))
        gradient = parameter.grad
        assert gradient is not None  # set by backward or synchronize()
        if gradient.is_sparse and self._options["sparse_as_dense"]:
            parameter.grad = gradient = gradient.to_dense()
        if gradient.is_sparse:
            op, process_set = self._options["op"], self._options["process_set"]
            handle = asynchronous.sparse_allreduce_async(gradient, name, op, process_set)
            return parameter, handle, None
        tensor, ctx = self._options["compression"].compress(gradient)
        return parameter, asynchronous.allreduce_async_(tensor, name=name, **self._how()), ctx

    def synchronize(self) -> None:
        """Waits until all gradients are reduced. A parameter without a gradient contributes zeros.

        Raises:
            HorovodInternalError: the ranks disagree, or a rank is lost.
        """
        if not self._is_alone():
            for parameter in self._parameters():
                if not self._is_submitted(parameter) and id(parameter) not in self._ready:
                    if parameter.grad is None:
                        parameter.grad = torch.zeros_like(parameter)
                    self._submit(parameter)
            self._take_results()
        self._reset_delays()
        self._synchronized = True

    def _take_results(self) -> None:
        decompress = self._options["compression"].decompress
        flying, self._in_flight = self._in_flight, {}
        groups, self._group_handles = self._group_handles, []
        self._submitted_in_groups.clear()
        for parameter, handle, ctx in flying.values():
            result = synchronize(handle)
            _set_gradient(parameter, result if result.is_sparse else decompress(result, ctx))
        for members, handle, contexts in groups:
            for member, result, ctx in zip(members, synchronize(handle), contexts, strict=True):
                _set_gradient(member, decompress(result, ctx))

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """In this block, step() does not reduce the gradients, because the program has called
        synchronize()."""
        self._synchronizes = False
        try:
            yield
        finally:
            self._synchronizes = True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Waits for the reduced gradients, unless in skip_synchronize(), and applies them."""
        if self._synchronizes:
            if self._synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() after "
                    "synchronize(): it reduces the gradients once more",
                    stacklevel=2,
                )
            self.synchronize()
        self._synchronized = False
        return super().step(closure)

    def zero_grad(self, *args: Any, **kwargs: Any) -> Any:
        """Like the optimizer's zero_grad(), but raises AssertionError while gradients are in
        flight."""
        if self._in_flight or self._group_handles or self._ready:
            raise AssertionError(
                "zero_grad() was called between backward() and step() or synchronize(), while "
                "gradients are being reduced"
            )
        return super().zero_grad(*args, **kwargs)

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Sets how many backward passes add to the gradients before they are reduced."""
        self._passes = passes
        self._reset_delays()

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Like the optimizer's load_state_dict(); first waits for gradients in flight."""
        if self._in_flight or self._group_handles:
            self._take_results()
        self._ready.clear()
        self._synchronized = False
        found = super().load_state_dict(*args, **kwargs)
        self._reset_delays()
        return found


def _set_gradient(parameter: Tensor, gradient: Tensor) -> None:
    if gradient.is_sparse or parameter.grad is None or parameter.grad.is_sparse:
        parameter.grad = gradient
    elif gradient.data_ptr() != parameter.grad.data_ptr():
        parameter.grad.copy_(gradient)


def DistributedOptimizer(
    optimizer: Any,
    named_parameters: Iterable[tuple[str, Tensor]] | None = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = reductions.Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | Sequence[Sequence[Tensor]] | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """An optimizer of the same class and with the same state, whose gradients are reduced.

    Args:
        named_parameters: the model's, including all parameters of the optimizer; None: numbers as
            names.
        compression: Compression.none or Compression.fp16.
        backward_passes_per_step: number of backward passes whose gradients are added up before they
            are reduced.
        op: Average, Sum, or Adasum, which reduces the steps instead of the gradients.
        gradient_predivide_factor: with Average: gradients are divided by this factor before they
            are added, and the sum by the number of ranks divided by this factor.
        groups: lists of parameters that are each reduced in one operation, or the number of such
            groups. num_groups: the older name of `groups`.
        sparse_as_dense: convert sparse gradients to dense ones; otherwise gather the rows of all
            ranks.

    Raises:
        ValueError: names are missing, duplicate or invalid; or arguments are mutually exclusive.
    """
    if gradient_predivide_factor != 1.0 and op != reductions.Average:
        raise invalid("gradient_predivide_factor needs op=Average")
    if num_groups and groups is None:
        groups = num_groups
    parameters = named(optimizer, named_parameters)
    options = {
        "compression": compression,
        "backward_passes_per_step": backward_passes_per_step,
        "op": op,
        "gradient_predivide_factor": gradient_predivide_factor,
        "groups": groups,
        "sparse_as_dense": sparse_as_dense,
        "process_set": process_set,
    }
    base = optimizer.__class__
    kind = AdasumSteps if op == reductions.Adasum else _Reducing
    made: Any = object.__new__(type(base.__name__, (kind, base), {}))
    made.__dict__.update(optimizer.__dict__)
    made._begin(parameters, options)
    return made
