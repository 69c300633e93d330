"""A run's ports from Spark's settings: the first free port is used."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from hearth import HearthError
from hearth.cluster.driver import reservation
from hearth.cluster.node import supervisor
from hearth.spark import links, ports

MESH = "spark.hearth.mesh.port"


@pytest.mark.parametrize(
    ("text", "retries", "found"),
    [
        ("", "16", [0]),
        ("0", "16", [0]),
        ("7300", "16", list(range(7300, 7317))),
        ("7300", "0", [7300]),
        ("7300-7302", "0", [7300, 7301, 7302]),
        ("65530", "16", list(range(65530, 65536))),
    ],
)
def test_ports_are_counted_as_spark_counts_them(text, retries, found):
    known = {MESH: text, "spark.port.maxRetries": retries}
    assert ports.ports_of(known.get, MESH) == found


def test_sixteen_ports_are_tried_by_default():
    assert len(ports.ports_of({MESH: "7300"}.get, MESH)) == 17


@pytest.mark.parametrize("text", ["many", "7302-7300", "-5", "70000", "7300-"])
def test_invalid_ports_are_refused(text):
    with pytest.raises(HearthError, match=rf"{MESH}={text} is invalid: use a port \(7300\)"):
        ports.ports_of({MESH: text}.get, MESH)


@pytest.fixture
def taken():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def listen(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


def test_a_used_port_is_skipped(taken):
    range_of_ports = list(range(taken, min(taken + 200, 65536)))
    with ports.first_free(range_of_ports, MESH, listen) as listener:
        assert listener.getsockname()[1] in range_of_ports[1:]


def test_no_free_port_is_a_one_line_error(taken):
    with pytest.raises(
        OSError, match=rf"no port of {MESH} \({taken}-{taken}\) is free: "
    ) as caught:
        ports.first_free([taken], MESH, listen)
    assert caught.value.errno == errno.EADDRINUSE


def test_the_coordinator_skips_used_ports(taken):
    from hearth.native._core import Coordinator, new_token

    def make(last: int) -> Coordinator:
        named = ports.coordinator_ports(range(taken, last + 1), MESH)
        return Coordinator(world=1, token=new_token(), **named)

    coordinator = make(min(taken + 200, 65535))
    assert taken < coordinator.port() <= taken + 200
    coordinator.close()
    said = rf"no port of {MESH} \({taken}-{taken}\) is free: .*already in use"
    with pytest.raises(OSError, match=said):
        make(taken)


def test_other_failures_are_unchanged():
    def fail(port: int):
        raise ValueError(f"not {port}")

    with pytest.raises(ValueError, match="not 1"):
        ports.first_free([1, 2], "x", fail)


def test_tfos_server_port_comes_first(monkeypatch):
    known = {ports.COORDINATOR: "7300-7301"}
    monkeypatch.delenv("TFOS_SERVER_PORT", raising=False)
    assert reservation.ports_of_driver(known.get) == ([7300, 7301], ports.COORDINATOR)
    server = reservation.Server(1, ports=[7300, 7301])
    assert server.get_server_ports() == [7300, 7301]
    monkeypatch.setenv("TFOS_SERVER_PORT", "8888")
    assert reservation.ports_of_driver(known.get) == ([8888], "TFOS_SERVER_PORT")
    assert server.get_server_ports() == [8888]


def test_nodes_of_one_host_take_different_ports(monkeypatch):
    monkeypatch.delenv("TENSORFLOW_PORT", raising=False)
    with supervisor._reserve_port([0]) as probe:
        first = probe.getsockname()[1]
    range_of_ports = range(first, min(first + 200, 65536))
    with (
        supervisor._reserve_port(range_of_ports) as one,
        supervisor._reserve_port(range_of_ports) as two,
    ):
        assert one.getsockname()[1] != two.getsockname()[1]
        # The node's server may bind the reserved port, too.
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("", one.getsockname()[1]))
            server.listen()


def test_without_a_setting_any_port_is_used(monkeypatch):
    monkeypatch.setattr(os, "environ", {})
    assert reservation.ports_of_driver({}.get) == ([0], ports.COORDINATOR)


def test_the_settings_of_a_session_reach_the_processes_of_its_ranks(monkeypatch):
    assert links.link_environment({}.get) == {}
    known = {ports.MESH: "7400-7499", "spark.network.crypto.enabled": "TRUE"}
    environment = links.link_environment(known.get)
    assert environment == {"HEARTH_TLS": "on", "HEARTH_MESH_PORT": "7400-7499"}
    monkeypatch.setenv("HEARTH_MESH_PORT", environment["HEARTH_MESH_PORT"])
    assert links.mesh_ports() == list(range(7400, 7500))
    monkeypatch.delenv("HEARTH_MESH_PORT")
    assert links.mesh_ports() == [0]
    for key in ("spark.ssl.rpc.enabled", "spark.authenticate.enableSaslEncryption"):
        assert links.link_environment({key: "true "}.get) == {"HEARTH_TLS": "on"}
        of_executors = {key: "true", "spark.executorEnv.HEARTH_TLS": "off"}
        assert links.link_environment(of_executors.get) == {"HEARTH_TLS": "off"}
    assert links.link_environment({"spark.ssl.enabled": "true"}.get) == {}


def test_a_rank_listens_on_the_ports_of_the_environment_alone(monkeypatch):
    from hearth.ranks.group import Ranks, Rendezvous

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("HEARTH_MESH_PORT", f"{port}-{port}")
        rendezvous = Rendezvous(lambda text: None, str, lambda: None, "127.0.0.1")
        with pytest.raises(OSError, match=rf"no port of {MESH} \({port}-{port}\) is free"):
            Ranks(rendezvous, 0, 1, 5)


@pytest.mark.parametrize(("tls", "hosts"), [(None, "ab"), ("off", "ab"), ("on", "aa")])
def test_nccl_is_allowed_without_encryption_and_within_a_host(tls, hosts, monkeypatch):
    monkeypatch.delenv("HEARTH_TLS", raising=False)
    if tls is not None:
        monkeypatch.setenv("HEARTH_TLS", tls)
    links.check_nccl(hosts)


def test_encryption_that_nccl_lacks_is_an_error_with_the_setting_that_allows_it(monkeypatch):
    monkeypatch.setenv("HEARTH_TLS", "on")
    words = r"spark\.network\.crypto\.enabled.*NCCL.*set spark\.executorEnv\.HEARTH_TLS=off"
    with pytest.raises(HearthError, match=words):
        links.check_nccl("ab")
