"""Converts the session's settings of connections between ranks to environment variables.

A variable in the executor's environment (spark.executorEnv) takes precedence over the setting.
"""

from __future__ import annotations

import os

from hearth.spark.dynamic_allocation import Setting
from hearth.spark.ports import MESH, ports_of

# Settings that encrypt Spark's connections between driver and executors.
_ENCRYPT = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.rpc.enabled",
)
_MESH_PORT = "HEARTH_MESH_PORT"


def link_environment(setting: Setting) -> dict[str, str]:
    """HEARTH_TLS if Spark encrypts, HEARTH_MESH_PORT if ports are fixed.

    Raises:
        HearthError: spark.hearth.mesh.port is neither a port nor a range of them.
    """
    found = {}
    if any(setting(key, "false").strip().lower() == "true" for key in _ENCRYPT):
        found["HEARTH_TLS"] = "on"
    ports = ports_of(setting, MESH)
    if ports[0]:
        found[_MESH_PORT] = f"{ports[0]}-{ports[-1]}"
    return found


def mesh_ports() -> list[int]:
    """The ports on which this process may listen for other ranks; [0]: the system chooses.

    Raises:
        HearthError: HEARTH_MESH_PORT is not a range of ports.
    """
    known = {MESH: os.environ.get(_MESH_PORT, "")}
    return ports_of(lambda key, default: known.get(key, default), MESH)
