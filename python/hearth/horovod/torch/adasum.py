"""DistributedOptimizer(op=Adasum): combines the ranks' steps instead of their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hearth.horovod import basics, reductions
from hearth.horovod.torch import asynchronous
from hearth.horovod.torch.handles import synchronize

if TYPE_CHECKING:
    _Optimizer = torch.optim.Optimizer
else:  # in the MRO, Optimizer would precede a user's class that does not derive from it
    _Optimizer = object


class AdasumSteps(_Optimizer):
    """Methods that are mixed into the class of the user's optimizer."""

    def _begin(self, parameters: list[tuple[str, Tensor]], options: dict[str, Any]) -> None:
        self._named = parameters
        self._options = options
        self._passes = options["backward_passes_per_step"]

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Has no effect, because the program calls step() once it has added up the gradients."""
        self._passes = passes

    def synchronize(self) -> None:
        """Does nothing: step() combines the ranks' steps."""

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Raises AssertionError: Adasum has nothing to skip."""
        raise AssertionError("skip_synchronize() cannot be used with op=Adasum")
        yield

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Makes a step on this rank, and combines it with the other ranks' steps."""
        before = [parameter.detach().clone() for _, parameter in self._named]
        loss = super().step(closure)
        if basics.size() == 1:
            return loss
        compression, process_set = self._options["compression"], self._options["process_set"]
        flying = []
        with torch.no_grad():
            for (name, parameter), start in zip(self._named, before, strict=True):
                delta, ctx = compression.compress(parameter - start)
                handle = asynchronous.allreduce_async_(
                    delta, name=name, op=reductions.Adasum, process_set=process_set
                )
                flying.append((parameter, start, handle, ctx))
            for parameter, start, handle, ctx in flying:
                parameter.copy_(start + compression.decompress(synchronize(handle), ctx))
        return loss
