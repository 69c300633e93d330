"""This process's connection to the other ranks, of which there is at most one at a time."""

from __future__ import annotations

import atexit
import itertools
import os
import threading
from typing import Any

from hearth.errors import invalid
from hearth.horovod import names, rendezvous
from hearth.horovod.engine import Engine

_TIMEOUT_S = 600.0  # limit for all ranks to connect

_lock = threading.Lock()
_numbers = itertools.count()
_engine: Engine | None = None


def connect() -> bool:
    """Connects to the other ranks; False if they are connected already.

    Raises:
        TimeoutError, ConnectionError, HearthError: not all ranks connected, or one failed.
    """
    global _engine
    with _lock:
        if _engine is not None:
            return False
        names.forget()
        _engine = Engine(rendezvous.find(), next(_numbers), rendezvous.identity(), _TIMEOUT_S)
        return True


def shutdown() -> None:
    """Leaves the group; operations of other ranks that wait for this one fail. Idempotent."""
    global _engine
    with _lock:
        ended, _engine = _engine, None
        if ended is not None:
            ended.close()


# shutdown() runs before hearth.ranks closes its groups, because atexit functions run in reverse
# order.
atexit.register(shutdown)


def _forget() -> None:
    """Called in a forked child, where the engine's threads do not exist."""
    global _engine
    _engine = None


os.register_at_fork(after_in_child=_forget)


def is_initialized() -> bool:
    """Whether init() has connected this process, and shutdown() was not called since."""
    return _engine is not None


def engine() -> Engine:
    """This process's engine. Raises ValueError before init()."""
    found = _engine
    if found is None:
        raise invalid("Horovod has not been initialized: call hvd.init() first")
    return found


def wait(call: dict[str, Any], name: str, set_id: int = 0) -> Any:
    """The result of an operation without arrays."""
    return engine().submit(call, name, (), set_id).result()
