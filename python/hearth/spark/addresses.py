"""Addresses for connections between driver and executors."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def coordinator_hosts(spark: SparkSession) -> tuple[str, str]:
    """The driver's (listen address, host for executors to connect to)."""
    conf = spark.sparkContext.getConf()
    if spark.sparkContext.master.startswith("local"):
        return "127.0.0.1", "127.0.0.1"
    host = bare(conf.get("spark.driver.host") or socket.gethostname())
    return bare(conf.get("spark.driver.bindAddress") or "") or address_of(host), host


def bare(host: str) -> str:
    """Removes the brackets that Spark adds to an IPv6 address."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def address_of(host: str) -> str:
    """Resolves a name, preferring IPv4. Raises OSError if the name is unknown."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return min(found, key=lambda each: each[0] != socket.AF_INET)[4][0]


def own_address() -> str:
    """This host's address on its default route; 127.0.0.1 if there is none."""
    return address_towards("8.8.8.8", 53)


def address_towards(host: str, port: int) -> str:
    """This host's address on the route to `host`; sends no packets."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0][0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, port))
            return probe.getsockname()[0]
    except OSError:
        return "127.0.0.1"
