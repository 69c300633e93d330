"""Port settings, for clusters whose firewalls open few ports.

Like spark.driver.port, each names the first port to try; used ports are skipped, up to
spark.port.maxRetries times. A range (7300-7399) is also accepted. 0 or unset: the system chooses.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hearth.errors import HearthError, ResourceExhaustedError
from hearth.spark.dynamic_allocation import Setting

COORDINATOR = "spark.hearth.coordinator.port"  # the driver's port, for ranks and nodes
MESH = "spark.hearth.mesh.port"  # each rank's port, for other ranks
FEED = "spark.hearth.feed.port"  # each node's port, for feed tasks on other hosts
NODE = "spark.hearth.node.port"  # each node's port, for its program's server
_RETRIES = "spark.port.maxRetries"
_USUAL_RETRIES = "16"
_MOST = 65535

Made = TypeVar("Made")


def ports_of(setting: Setting, key: str) -> list[int]:
    """The ports to try in order; [0] if the system chooses.

    Raises:
        HearthError: the setting is neither a port nor a range of ports.
    """
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
        raise HearthError(f"{key}={text} is invalid: use a port (7300) or a range (7300-7399)")
    return ports


def first_free(ports: Sequence[int], what: str, make: Callable[[int], Made]) -> Made:
    """Returns make(port) for the first free port.

    `what`: who uses the ports, for the error.

    Raises:
        OSError: all ports are in use, or `make` failed for another reason.
    """
    last: Exception | None = None
    for port in ports:
        try:
            return make(port)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            last = error
    error = ResourceExhaustedError(f"no port of {what} ({ports[0]}-{ports[-1]}) is free: {last}")
    error.errno = errno.EADDRINUSE
    raise error from last


def coordinator_ports(ports: Sequence[int], what: str) -> dict[str, Any]:
    """The arguments for a Coordinator to use the first free port."""
    return {"bind_port": ports[0], "bind_ports": len(ports), "setting": what}
