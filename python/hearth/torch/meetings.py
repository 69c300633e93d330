"""How ranks of a process group find each other for a group of the core's collective."""

from __future__ import annotations

import os
from collections.abc import Callable

from hearth.ranks.group import Rendezvous
from hearth.spark.addresses import address_towards

# A secret of a Hearth cluster; without one rank 0 publishes a key.
_key = ""


def use_key(key: str) -> None:
    """Later meetings use the key; an empty one changes nothing."""
    global _key
    _key = key or _key


def meeting(
    publish: Callable[[str], None], read: Callable[[], str], withdraw: Callable[[], object]
) -> Rendezvous:
    """A Rendezvous at this process's address on the interface towards rank 0's; at one of loopback
    where MASTER_ADDR is not set."""
    master = os.environ.get("MASTER_ADDR")
    host = address_towards(master, int(os.environ.get("MASTER_PORT", "1"))) if master else ""
    return Rendezvous(publish, read, withdraw, host, _key)
