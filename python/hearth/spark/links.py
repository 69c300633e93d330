"""Converts the session's settings for connections between ranks to environment variables.

A variable in the executor's environment (spark.executorEnv) takes precedence over the setting.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from hearth.errors import invalid
from hearth.spark.dynamic_allocation import Setting
from hearth.spark.ports import MESH, ports_of

# Settings that encrypt Spark's connections between driver and executors.
_ENCRYPT = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.rpc.enabled",
)
_MESH_PORT = "HEARTH_MESH_PORT"
_TLS = "HEARTH_TLS"
_EXECUTORS_TLS = f"spark.executorEnv.{_TLS}"


def link_environment(setting: Setting) -> dict[str, str]:
    """Returns HEARTH_TLS if Spark encrypts connections or spark.executorEnv sets HEARTH_TLS, and
    HEARTH_MESH_PORT if ports are fixed.

    Raises:
        HearthError: spark.hearth.mesh.port is neither a port nor a range of them.
    """
    found = {}
    if tls := setting(_EXECUTORS_TLS, ""):  # applies to ranks in the driver, too
        found[_TLS] = tls
    elif any(setting(key, "false").strip().lower() == "true" for key in _ENCRYPT):
        found[_TLS] = "on"
    ports = ports_of(setting, MESH)
    if ports[0]:
        found[_MESH_PORT] = f"{ports[0]}-{ports[-1]}"
    return found


def check_nccl(hosts: Iterable[str]) -> None:
    """Called in a rank. Raises HearthError if connections between ranks' hosts must be encrypted,
    because NCCL cannot encrypt.

    Args:
        hosts: all ranks' hosts; no encryption is needed if all ranks are on one host.
    """
    if os.environ.get(_TLS) == "on" and len(set(hosts)) > 1:
        raise invalid(
            "Spark's settings require encryption between ranks (HEARTH_TLS=on, by "
            "spark.network.crypto.enabled, another setting of Spark's encryption or "
            f"{_EXECUTORS_TLS}), but NCCL sends gradients unencrypted: set {_EXECUTORS_TLS}=off if "
            "the network encrypts or is private, or train on CPUs with the backend hearth"
        )


def mesh_ports() -> list[int]:
    """The ports on which this process may listen for other ranks; [0] if the system chooses.

    Raises:
        HearthError: HEARTH_MESH_PORT is not a range of ports.
    """
    known = {MESH: os.environ.get(_MESH_PORT, "")}
    return ports_of(lambda key, default: known.get(key, default), MESH)
