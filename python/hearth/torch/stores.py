"""PyTorch's store, in which ranks publish strings before they are connected."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import torch.distributed as dist

# Interval between two reads of the store, which serves all ranks.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.05

_kept: list[Any] = []


def read(store: Any, key: str, timeout_s: float) -> str:
    """The value of a key, once it is set.

    Polls, because a thread in a store's wait() blocks all other threads, including the one that
    would set the key for which the other rank waits.

    Raises:
        DistStoreError: the key was not set within `timeout_s`, or the store cannot be reached.
    """
    limit, pause = time.monotonic() + timeout_s, _FIRST_PAUSE_S
    while not store.check([key]):
        if time.monotonic() > limit:
            raise dist.DistStoreError(
                f'the other rank did not publish its address in the store as "{key}" within '
                f"{timeout_s:g} s: check that all ranks run and call the same operations"
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
    return store.get(key).decode()


def keep(store: Any, rank: int) -> None:
    """Makes a store that rank 0 serves outlive destroy_process_group().

    Other ranks may call their next init_process_group() before rank 0 has left the previous group.
    They then reach the same store, and must find no keys of the previous group in it.
    """
    number_the_groups()
    if rank == 0:
        _kept[:] = [store]


@cache
def number_the_groups() -> None:
    """Gives each later init_process_group() of this process separate keys in the store."""
    # torch.distributed has a function with the module's name, which shadows the module.
    handlers = import_module("torch.distributed.rendezvous")._rendezvous_handlers
    numbers = itertools.count()
    for scheme in ("env", "tcp"):
        handlers[scheme] = _numbered(handlers[scheme], numbers)


def _numbered(handler: Callable[..., Any], numbers: Iterator[int]) -> Callable[..., Any]:
    def meet(*args: Any, **options: Any) -> Iterator[Any]:
        for store, rank, world_size in handler(*args, **options):
            prefix = f"hearth/{next(numbers)}"
            yield dist.PrefixStore(prefix, store), rank, world_size

    return meet
