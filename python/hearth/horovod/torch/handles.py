"""Handles of asynchronous operations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from torch import Tensor

from hearth.horovod import current, names
from hearth.horovod.calls import set_id
from hearth.horovod.process_sets import ProcessSet
from hearth.horovod.torch import tensors

_numbers = itertools.count()
# For each handle: the future to wait for, and the function that converts its result to the output.
_open: dict[int, tuple[Future[Any], Callable[[Any], Any]]] = {}


class Handle(int):
    """The number of an operation in flight. Calling the handle waits for the output, like
    synchronize()."""

    def __call__(self) -> Any:
        return synchronize(self)


def submit(
    call: dict[str, Any],
    name: str | None,
    inputs: Sequence[Tensor],
    process_set: ProcessSet,
    finish: Callable[[Any], Any],
) -> Handle:
    """Submits an operation on tensors, which must not change until it completes. In-place
    operations overwrite the tensors with the results.

    Raises:
        ValueError: the name is in flight, or this rank is not in the process set.
        HorovodInternalError: a rank has ended.
    """
    arrays = [tensors.array_of(each) for each in inputs]
    whole = {
        **call,
        "dtypes": [tensors.kind_of(each) for each in inputs],
        "shapes": [list(each.shape) for each in inputs],
    }
    number = set_id(process_set)
    name = names.of_operation(call["kind"], name, number)
    return made(current.engine().submit(whole, name, arrays, number), finish)


def made(future: Future[Any], finish: Callable[[Any], Any]) -> Handle:
    """A handle for a Future's result."""
    handle = Handle(next(_numbers))
    _open[handle] = future, finish
    return handle


def poll(handle: int) -> bool:
    """Whether synchronize() would return or raise at once."""
    return handle not in _open or _open[handle][0].done()


def synchronize(handle: int) -> Any:
    """Waits for an operation and returns its output; None if it was already returned.

    Raises:
        HorovodInternalError: the operation failed.
    """
    if handle not in _open:
        return None
    future, finish = _open.pop(handle)
    return finish(future.result())
