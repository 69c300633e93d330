"""Authenticated clients can connect to a cluster's listeners despite many idle connections."""

import os
import re
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import suppress

import pytest
from test_security import (  # noqa: F401 (fixtures)
    KEY,
    PATIENCE_S,
    connect,
    knock,
    listener,
    patient,
)

from tensorflowonspark import reservation


@pytest.mark.parametrize("remote", [False, True])
def test_many_silent_connections_do_not_block_a_client(listener, remote, patient):  # noqa: F811
    connections = [connect(listener, remote) for _ in range(200)]
    try:
        for _ in range(4):
            began = time.monotonic()
            client = knock(listener, remote=remote)
            client.send({"op": "feed", "feed": "f"})
            assert client.receive(60)[0] == {"op": "welcome"}
            assert time.monotonic() - began < PATIENCE_S / 2
            client.close()
    finally:
        for sock in connections:
            sock.close()


def test_many_connections_do_not_block_a_client_of_the_reservation_server(
    monkeypatch,
    patient,  # noqa: F811
):
    monkeypatch.setenv("TFOS_SERVER_HOST", "127.0.0.1")
    server = reservation.Server(1)
    address = server.start()
    connections = [socket.create_connection(address, 5) for _ in range(600)]
    try:
        began = time.monotonic()
        client = reservation.Client(address)
        assert client.register({"node": 1}) == "OK"
        assert time.monotonic() - began < PATIENCE_S / 2
        client.close()
    finally:
        for sock in connections:
            sock.close()
        server.stop()


NO_DESCRIPTORS = """
import os, resource, socket, sys, time
from hearth.cluster.channel import Channel, feed_terms
from hearth.cluster.node.feed_listener import FeedListener

node, ours = socket.socketpair()
terms = feed_terms(bytes(range(32)).hex(), 2)
listener = FeedListener(terms, Channel(ours), print, "127.0.0.1")
used = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (used + 4, used + 4))
print(listener.name, listener.port, flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("remote", [False, True])
def test_a_listener_without_descriptors_opens_again(remote):
    host = subprocess.Popen(
        [sys.executable, "-c", NO_DESCRIPTORS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )

    class Host:
        name, port = host.stdout.readline().split()

    Host.port = int(Host.port)
    try:
        connections = [connect(Host, remote) for _ in range(40)]
        time.sleep(0.3)
        for _ in range(3):
            client = knock(Host, remote=remote)
            client.send({"op": "feed", "feed": "f"})
            assert client.receive(60)[0] == {"op": "welcome"}
            client.close()
        for sock in connections:
            sock.close()
    finally:
        host.communicate("\n", timeout=60)


def test_a_process_of_another_user_is_refused_before_it_sends(listener, capfd):  # noqa: F811
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    code = f"""
    import os, socket
    os.setuid(65534)
    sock = socket.socket(socket.AF_UNIX)
    sock.connect("\\0{listener.name}")
    sock.settimeout(60)
    try:
        print("got", sock.recv(100))
    except ConnectionError:
        print("got", b"")
    """
    done = subprocess.run(
        [sys.executable, "-S", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert done.stdout == "got b''\n"  # it does not even get the listener's greeting
    assert listener.refused == 1
    words = r"process \d+ of user 65534 was refused at .*: it belongs to another user"
    assert re.search(words, capfd.readouterr().err)


def test_the_reservation_port_opens_when_it_is_asked_for(sc, notes):
    from tensorflowonspark import TFCluster

    def main(notes, ctx):
        notes.write(ctx, ctx.task_index)

    def listening():
        ports = set()
        for name in ("tcp", "tcp6"):
            with suppress(OSError), open(f"/proc/{os.getpid()}/net/{name}") as table:
                for line in table.readlines()[1:]:
                    fields = line.split()
                    if fields[3] == "0A":
                        ports.add((fields[1], fields[9]))
        inodes = set()
        for fd in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                inodes.add(os.readlink(f"/proc/self/fd/{fd}").strip("socket:[]"))
        return {address for address, inode in ports if inode in inodes}

    before = listening()
    with TFCluster.run(sc, main, notes, 1, 0) as cluster:
        opened = listening() - before
        assert len(opened) == 1  # the coordinator's port
        host, port = cluster.cluster_meta["server_addr"]
        (listener,) = listening() - before - opened
        assert int(listener.partition(":")[2], 16) == port
        assert listener.partition(":")[0] == "0100007F"  # loopback, like the coordinator
        assert cluster.meta.get("server_addr") == (host, port)
