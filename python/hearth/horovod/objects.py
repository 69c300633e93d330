"""Exchanges Python objects between ranks.

Objects are pickled, so each rank runs code chosen by the others. The ranks authenticate with the
job's key before they are connected, and trust each other, as in PyTorch's
broadcast_object_list().
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from hearth.horovod import calls, current, names
from hearth.horovod.process_sets import ProcessSet, global_process_set


def pickler() -> Any:
    """cloudpickle if it is installed, which also pickles functions of the main program."""
    try:
        import cloudpickle
    except ImportError:
        try:
            from pyspark import cloudpickle
        except ImportError:
            return pickle
    return cloudpickle


def broadcast_object(
    obj: Any = None,
    root_rank: int = 0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The object of rank `root_rank`, on all ranks. It is unpickled, so the ranks must trust each
    other.

    Raises:
        HorovodInternalError: a rank was lost. PickleError, TypeError: the object cannot be pickled.
    """
    number = calls.set_id(process_set)
    name = names.of_operation("broadcast_object", name, number)
    data = b""
    if current.engine().rank == root_rank:
        data = pickler().dumps(obj)
    size = np.array([len(data)], np.int64)
    _broadcast(size, "int64", f"{name}.size", root_rank, number)
    array = np.frombuffer(bytearray(data.ljust(int(size[0]), b"\0")), np.uint8)
    _broadcast(array, "uint8", f"{name}.data", root_rank, number)
    return obj if current.engine().rank == root_rank else pickle.loads(array.tobytes())


def allgather_object(
    obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """The objects of all ranks; they are unpickled, so the ranks must trust each other.

    Raises as broadcast_object().
    """
    number = calls.set_id(process_set)
    name = names.of_operation("allgather_object", name, number)
    array = np.frombuffer(bytearray(pickler().dumps(obj)), np.uint8)
    sizes = _gather(np.array([len(array)], np.int64), "int64", f"{name}.size", number)
    data = _gather(array, "uint8", f"{name}.data", number)
    return [pickle.loads(part.tobytes()) for part in np.split(data, np.cumsum(sizes)[:-1])]


def _broadcast(array: Any, kind: str, name: str, root: int, set_id: int) -> None:
    call = {"kind": "broadcast", "dtypes": [kind], "shapes": [list(array.shape)], "root": root}
    current.engine().submit(call, name, [array], set_id).result()


def _gather(array: Any, kind: str, name: str, set_id: int) -> Any:
    call = {"kind": "allgather", "dtypes": [kind], "shapes": [list(array.shape)]}
    [found] = current.engine().submit(call, name, [array], set_id).result()
    return found
