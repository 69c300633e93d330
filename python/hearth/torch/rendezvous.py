"""The rendezvous through which a process group's ranks form a group of the core's collective."""

from __future__ import annotations

import os
from collections.abc import Callable

from hearth.ranks.group import Rendezvous
from hearth.spark.addresses import address_towards

# Secret of a Hearth cluster; if empty, rank 0 publishes a key.
_key = ""


def use_key(key: str) -> None:
    """Sets the key of later rendezvous; an empty key changes nothing."""
    global _key
    _key = key or _key


def at_master(
    publish: Callable[[str], None], read: Callable[[], str], withdraw: Callable[[], object]
) -> Rendezvous:
    """A rendezvous at this process's address on the route to rank 0, or at the loopback address if
    MASTER_ADDR is not set."""
    master = os.environ.get("MASTER_ADDR")
    host = address_towards(master, int(os.environ.get("MASTER_PORT", "1"))) if master else ""
    return Rendezvous(publish, read, withdraw, host, _key)
