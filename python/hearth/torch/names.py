"""Names for what the backend "hearth" reduces: told in errors, stall reports and the timeline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Here(threading.local):
    name = ""
    once = False  # whether the next call alone has it


_here = _Here()


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Collective calls of the block have this name. All ranks give the same one, as the ranks'
    calls are compared."""
    with _named(name, once=False):
        yield


def take() -> str:
    """The name that a call of this thread, made now, has; empty where none was given."""
    name = _here.name
    if _here.once:
        _here.name = ""
    return name


@contextmanager
def _named(name: str, once: bool) -> Iterator[None]:
    before = _here.name, _here.once
    _here.name, _here.once = name, once
    try:
        yield
    finally:
        _here.name, _here.once = before


def name_gradients(
    model: Any, hook: Callable[[Any, Any], Any] | None = None, state: Any = None
) -> None:
    """Names each bucket of a DistributedDataParallel model by the parameters in it.

    Args:
        model: the DistributedDataParallel, before its first backward.
        hook: the communication hook that the model is to have, as bf16_compress_hook; None: an
            all-reduce, as without a hook. state: what the hook gets.
    """
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    run = hook or allreduce_hook
    names = {id(parameter): name for name, parameter in model.module.named_parameters()}

    def named(state, bucket):  # PyTorch refuses other annotations than its own classes
        inside = [names.get(id(parameter), "?") for parameter in bucket.parameters()]
        others = f" and {len(inside) - 1} more" if len(inside) > 1 else ""
        # What follows the first call (PowerSGD's) runs here, or in the thread that ends that one,
        # by chance: it has no name on any rank.
        with _named(f"{inside[0]}{others}", once=True):
            return run(state, bucket)

    model.register_comm_hook(state, named)
