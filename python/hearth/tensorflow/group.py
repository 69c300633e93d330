"""The process's group of ranks, in which TensorFlow's ops reduce."""

from __future__ import annotations

import atexit
import ctypes
import itertools
import threading
from typing import Any

from hearth import HearthError, native
from hearth.errors import NotFoundError

_LIBRARY = "libhearth_tensorflow_collective.so"
_TIMEOUT_S = 300.0

_lock = threading.Lock()
_numbers = itertools.count()
_ranks: Any = None
_place: Any = None
_plugin: Any = None
_ops: Any = None


def init(place: Any = None, timeout_s: float = _TIMEOUT_S) -> None:
    """Connects this process to the other ranks. Idempotent.

    In a node of a Hearth cluster the ranks are the nodes that take rows, and `place` is not needed.
    Any other process is the only rank, unless it passes `place`.

    Args:
        place: a hearth.ranks.place.Place.
        timeout_s: time limit for all ranks to connect, and for each operation.

    Raises:
        ImportError: TensorFlow is missing, or lacks the C interface of 2.16.
        FileNotFoundError: hearth was built without TensorFlow.
        TimeoutError, ConnectionError, HearthError: not all ranks connected, or one failed.
    """
    global _ranks, _place
    from hearth.ranks.group import Ranks
    from hearth.ranks.place import alone, here

    with _lock:
        if _ranks is not None:
            return
        _load()
        place = place or here() or alone()
        name = f"hearth.tensorflow/{next(_numbers)}"
        ranks = Ranks(place.rendezvous_of(name), place.rank, place.world, timeout_s)
        _plugin.hearth_tensorflow_use(ctypes.c_void_p(ranks.c_api()))
        _ranks, _place = ranks, place


def shutdown() -> None:
    """Leaves the group; ranks that wait for this one fail. Idempotent."""
    global _ranks
    with _lock:
        ranks, _ranks = _ranks, None
        if ranks is not None:
            _plugin.hearth_tensorflow_use(None)
            ranks.close()


# shutdown() runs before hearth.ranks closes its groups, because atexit functions run in reverse
# order.
atexit.register(shutdown)


def is_initialized() -> bool:
    """Whether init() has connected this process, and shutdown() was not called since."""
    return _ranks is not None


def rank() -> int:
    """This process's rank. Raises HearthError before init()."""
    return _group().rank


def size() -> int:
    """The number of ranks. Raises HearthError before init()."""
    return _group().world


def run(operation: str, *arrays: Any, **how: Any) -> None:
    """Runs an operation of the core on NumPy arrays, after the operations that TensorFlow
    submitted.

    Raises HearthError before init(), and errors of the operation.
    """
    run_in(_group(), operation, *arrays, **how)


def run_in(ranks: Any, operation: str, *arrays: Any, **how: Any) -> None:
    """Like run(), in a group that another() returned."""
    from hearth.native import _core

    request = _core.Request(operation, *arrays)
    for key, value in how.items():
        setattr(request, key, value)
    ranks.submit(request)(ranks.timeout_s)


def another(purpose: str) -> Any:
    """Connects the same ranks once more, for another thread. All ranks call it in the same
    order."""
    from hearth.ranks.group import Ranks

    own = _group()
    name = f"hearth.tensorflow/{purpose}/{next(_numbers)}"
    return Ranks(_place.rendezvous_of(name), own.rank, own.world, own.timeout_s)


def ops() -> Any:
    """The module of the ops. Raises HearthError before init()."""
    _group()
    return _ops


def _group() -> Any:
    ranks = _ranks
    if ranks is None:
        raise HearthError("this process has no group of ranks: call hearth.tensorflow.init() first")
    return ranks


def _load() -> None:
    global _plugin, _ops
    if _plugin is not None:
        return
    library = native.DIRECTORY / _LIBRARY
    if not library.is_file():
        raise NotFoundError(
            f"TensorFlow's ops for the collective are not at {library}: build hearth in "
            "an environment that has TensorFlow"
        )
    import tensorflow as tf

    ops = tf.load_op_library(str(library))
    plugin = ctypes.CDLL(str(library))
    if not plugin.hearth_tensorflow_registered():
        raise ImportError(
            f"TensorFlow {tf.__version__} cannot load the ops of {library}: it needs the C "
            "interface of 2.16 or later"
        )
    plugin.hearth_tensorflow_use.restype = None
    _plugin, _ops = plugin, ops
