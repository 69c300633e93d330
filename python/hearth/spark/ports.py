"""Ports that a run may take, by Spark's settings: for clusters whose firewalls let few through.

Each is the first of some, as spark.driver.port is: a port that is taken is passed over, up to
spark.port.maxRetries times. A range (7300-7399) says so itself. 0, or nothing: the system chooses.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hearth.spark.dynamic_allocation import Setting

COORDINATOR = "spark.hearth.coordinator.port"  # of the driver: ranks and nodes connect to it
MESH = "spark.hearth.mesh.port"  # of each rank: other ranks do
FEED = "spark.hearth.feed.port"  # of each node: feed tasks of other hosts do
NODE = "spark.hearth.node.port"  # of each node: for its program's own server
_RETRIES = "spark.port.maxRetries"
_USUAL_RETRIES = "16"
_MOST = 65535

Made = TypeVar("Made")


def ports_of(setting: Setting, key: str) -> list[int]:
    """The ports to try, each the next of the last; [0] where the system is to choose.

    Raises:
        HearthError: the setting is neither a port nor a range of them.
    """
    from hearth import HearthError

    text = setting(key, "").strip()
    first, dash, last = text.partition("-")
    try:
        if int(first or 0) == 0 and not dash:
            return [0]
        most = int(last) if dash else int(first) + int(setting(_RETRIES, _USUAL_RETRIES))
        ports = list(range(int(first), min(most, _MOST) + 1))
    except ValueError:
        ports = []
    if not ports or ports[0] < 1:
        raise HearthError(f"{key}={text} names no port: write 7300, or a range as 7300-7399")
    return ports


def first_free(ports: Sequence[int], what: str, make: Callable[[int], Made]) -> Made:
    """make(port) for the first port that nobody has.

    `what`: whose ports they are, for the error.

    Raises:
        OSError: all are taken, or `make` failed otherwise.
    """
    last: Exception | None = None
    for port in ports:
        try:
            return make(port)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            last = error
    raise OSError(
        errno.EADDRINUSE, f"no port of {what} ({ports[0]}-{ports[-1]}) is free: {last}"
    ) from last


def coordinator_ports(ports: Sequence[int], what: str) -> dict[str, Any]:
    """The arguments by which a Coordinator takes the first of the ports that nobody has."""
    return {"bind_port": ports[0], "bind_ports": len(ports), "setting": what}
