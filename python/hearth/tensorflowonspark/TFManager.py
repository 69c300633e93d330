"""Named queues and values that several processes share, for programs that fill their own queues.

A cluster's feed does not use a TFManager (see feed_server). Connections authenticate with `authkey`
before anything is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from multiprocessing import JoinableQueue
from multiprocessing.managers import BaseManager
from typing import Any


class TFManager(BaseManager):
    """A manager process, or a connection to it. Any process that knows `authkey` may call
    get_queue(name), get(key) and set(key, value)."""


# The manager that start() created in this process; in a manager's process, its data.
mgr: TFManager | None = None
qdict: dict[str, JoinableQueue[Any]] = {}
kdict: dict[str, object] = {}


def _get_queue(qname: str) -> JoinableQueue[Any] | None:
    return qdict.get(qname)


def _get(key: str) -> object:
    return kdict.get(key)


def _set(key: str, value: object) -> None:
    kdict[key] = value


def _key_bytes(authkey: str | bytes) -> bytes:
    return authkey.encode() if isinstance(authkey, str) else authkey


def start(authkey: str | bytes, queues: Iterable[str], mode: str = "local") -> TFManager:
    """Starts a manager process.

    Args:
        authkey: the key that connect() needs.
        queues: names of the queues.
        mode: "local": a unix socket; "remote": a TCP port of this host's address.
    """
    global mgr
    qdict.clear()
    kdict.clear()
    qdict.update((name, JoinableQueue()) for name in queues)
    _register()
    if mode == "remote":
        from hearth.tensorflowonspark.util import get_ip_address

        mgr = TFManager(address=(get_ip_address(), 0), authkey=_key_bytes(authkey))
    else:
        mgr = TFManager(authkey=_key_bytes(authkey))
    mgr.start()
    return mgr


def connect(address: Any, authkey: str | bytes) -> TFManager:
    """Connects to the manager at `address`. Raises AuthenticationError for another key."""
    _register()
    manager = TFManager(address=address, authkey=_key_bytes(authkey))
    manager.connect()
    return manager


def _register() -> None:
    TFManager.register("get_queue", callable=_get_queue)
    TFManager.register("get", callable=_get)
    TFManager.register("set", callable=_set)
