"""Names for reductions of the backend "hearth", shown in errors, stall reports and the timeline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Here(threading.local):
    name = ""
    once = False  # whether only the next call has this name


_here = _Here()


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Names the collective calls in the block. All ranks must use the same names, because the
    ranks' calls are compared."""
    with _named(name, once=False):
        yield


def take() -> str:
    """The name for a call that this thread makes now; empty if none is set."""
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
    """Names each bucket of a DistributedDataParallel model by its parameters.

    Args:
        model: the DistributedDataParallel, before its first backward.
        hook: the model's communication hook, such as bf16_compress_hook; None: the default
            all-reduce. state: passed to the hook.
    """
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    run = hook or allreduce_hook
    names = {id(parameter): name for name, parameter in model.module.named_parameters()}

    # PyTorch only accepts annotations with its classes.
    def named(state, bucket):  # type: ignore[no-untyped-def]
        inside = [names.get(id(parameter), "?") for parameter in bucket.parameters()]
        others = f" and {len(inside) - 1} more" if len(inside) > 1 else ""
        # Only the first call is named. Further calls (PowerSGD's) run here or in the thread that
        # completes the first, depending on timing, so naming them could differ between ranks.
        with _named(f"{inside[0]}{others}", once=True):
            return run(state, bucket)

    model.register_comm_hook(state, named)
