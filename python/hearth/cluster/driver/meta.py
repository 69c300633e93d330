"""The description of a cluster that its nodes receive."""

from __future__ import annotations

import logging
import os
import random
import secrets
from collections.abc import Callable
from typing import Any

from hearth.cluster.driver import reservation
from hearth.cluster.driver.plan import Plan
from hearth.spark.access import ClassicSpark, ConnectSpark
from hearth.spark.links import link_environment
from hearth.spark.ports import FEED, NODE, ports_of

logger = logging.getLogger(__name__)


class Key(str):
    """A cluster's key; repr() hides it."""

    def __repr__(self) -> str:
        return "'***'"

    __str__ = str.__str__


class Meta(dict[str, Any]):
    """The description of a cluster; reading its key "server_addr" starts the reservation server."""

    def __init__(self, start_server: Callable[[], tuple[str, int]]):
        super().__init__()
        self._start_server = start_server

    def __missing__(self, key: str) -> Any:
        if key != "server_addr":
            raise KeyError(key)
        self[key] = self._start_server()
        logger.info("listening for reservations at %s", self[key])
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Like dict.get(), but starts the server if the key is "server_addr"."""
        return self[key] if key == "server_addr" else super().get(key, default)

    def __reduce__(self) -> Any:
        """Pickles the description as a plain dict, for tasks."""
        return dict, (dict(self),)


def meta_of(spark: ClassicSpark | ConnectSpark, plan: Plan, server: reservation.Server) -> Meta:
    """The description of a new cluster."""
    meta = Meta(server.start)
    meta |= {
        "id": random.getrandbits(64),
        "cluster_template": plan.template,
        "num_executors": sum(map(len, plan.template.values())),
        "default_fs": spark.default_fs(),
        "working_dir": os.getcwd(),
        "release_port": plan.release_port,
        "restart_count": 0,
        "ports": {key: ports_of(spark.conf, key) for key in (FEED, NODE)},
        "links": link_environment(spark.conf),
        "keep_key": Key(secrets.token_hex(32)),
    }
    return meta
