"""The driver's addresses, IPv4 and IPv6."""

import socket
from types import SimpleNamespace

import pytest

from hearth.spark import addresses


def session(**conf):
    """A session with a non-local master and these settings of spark.driver."""
    values = {f"spark.driver.{key}": value for key, value in conf.items()}
    return SimpleNamespace(
        sparkContext=SimpleNamespace(
            master="yarn", getConf=lambda: SimpleNamespace(get=lambda key: values.get(key))
        )
    )


def resolve(monkeypatch, *found):
    """Makes every name resolve to these addresses, in this order."""

    def answer(host, port, **_):
        families = [socket.AF_INET6 if ":" in each else socket.AF_INET for each in found]
        return [
            (family, socket.SOCK_STREAM, 6, "", (address, 0))
            for family, address in zip(families, found, strict=True)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", answer)


def test_brackets_of_an_ipv6_address_are_removed():
    spark = session(host="[fd00::7]", bindAddress="[::]")
    assert addresses.coordinator_hosts(spark) == ("::", "fd00::7")
    assert addresses.coordinator_hosts(session(host="[::1]")) == ("::1", "::1")


def test_ipv4_is_preferred_for_a_name(monkeypatch):
    resolve(monkeypatch, "fd00::7", "10.0.0.7")
    assert addresses.coordinator_hosts(session(host="driver")) == ("10.0.0.7", "driver")


def test_ipv6_is_used_for_a_name_without_ipv4(monkeypatch):
    resolve(monkeypatch, "fd00::7")
    assert addresses.coordinator_hosts(session(host="driver")) == ("fd00::7", "driver")


def test_an_unknown_name_is_an_os_error(monkeypatch):
    def fail(*_, **__):
        raise socket.gaierror("unknown")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(OSError, match="unknown"):
        addresses.coordinator_hosts(session(host="driver"))
