"""A cluster's ports refuse unauthenticated clients, and keys are not printed."""

import json
import os
import random
import socket
import struct
import threading
import time
from contextlib import suppress

import psutil
import pytest

from hearth.cluster.channel import Channel, feed_terms, handshake_terms
from hearth.cluster.node.feed_listener import FeedListener
from tensorflowonspark import reservation

KEY = bytes(range(32)).hex()
NODE = 2
MAX_FRAME_BYTES = 1 << 20
CONNECTIONS = 500
FRAMES = 100_000  # in all connections together


@pytest.fixture
def listener():
    node, ours = socket.socketpair()
    errors = []
    listener = FeedListener(feed_terms(KEY, NODE), Channel(ours), errors.append, "127.0.0.1")
    listener.errors = errors
    listener.node = Channel(node)
    yield listener
    listener.close()


PATIENCE_S = 60.0


@pytest.fixture
def patient(monkeypatch):
    """On a busy machine a handshake may take longer than the default timeout."""
    monkeypatch.setattr(Channel.accept_handshake, "__defaults__", (PATIENCE_S,))


def test_a_client_that_sends_byte_by_byte_gets_no_more_time():
    ours, sender = socket.socketpair()
    listener = Channel(ours)
    gone = threading.Event()

    def drip():
        while not gone.wait(0.1):
            sender.send(b"x")

    slow = threading.Thread(target=drip)
    slow.start()
    began = time.monotonic()
    try:
        with pytest.raises(TimeoutError):
            listener.accept_handshake(feed_terms(KEY, NODE), 0.5)
        assert time.monotonic() - began < 6  # all 80 bytes would take 8 s
    finally:
        gone.set()
        slow.join()
        listener.close()
        sender.close()


def connect(listener, remote):
    if remote:
        return socket.create_connection(("127.0.0.1", listener.port), 5)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect("\0" + listener.name)
    return sock


def knock(listener, terms=None, remote=False):
    channel = Channel(connect(listener, remote))
    channel.offer_handshake(terms or feed_terms(KEY, NODE))
    return channel


def wait_for_handshakes():
    """Waits until this process's listeners have handled all handshakes."""
    for thread in threading.enumerate():
        if thread.name == "hearth-handshake":
            thread.join(60)


def noise_frames(noise, count):
    """Consecutive frames of random bytes; every second one has a valid length."""
    parts = []
    for number in range(count):
        body = noise.randbytes(noise.randrange(1, 64))
        parts.append(struct.pack(">I", len(body)) if number % 2 else noise.randbytes(4))
        parts.append(body)
    return b"".join(parts)


def send_noise(connect, noise):
    """Connects many times without a key and sends many frames each; memory must not grow."""
    before = psutil.Process().memory_info().rss
    for _ in range(CONNECTIONS):
        with connect() as sock:
            try:
                sock.sendall(noise_frames(noise, FRAMES // CONNECTIONS))
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(4096):
                    pass
            except OSError:
                pass  # the listener refused it already
    assert psutil.Process().memory_info().rss - before < 64 << 20


@pytest.mark.parametrize("remote", [False, True])
def test_the_feed_listener_drops_random_frames(listener, remote):
    send_noise(lambda: connect(listener, remote), random.Random(1))
    assert listener.refused == CONNECTIONS
    with pytest.raises(TimeoutError):
        listener.node.receive(0)
    client = knock(listener, remote=remote)
    client.send({"op": "feed", "feed": "f"})
    assert client.receive(60)[0] == {"op": "welcome"}
    message, fds = listener.node.receive(60, descriptors=1)
    assert message == {"op": "feed", "from_remote": remote}
    node = Channel(socket.socket(fileno=fds[0]))
    wait_for_handshakes()  # until the handshake thread has released its connection
    client.send({"op": "rings"})
    assert node.receive(60)[0] == {"op": "rings"}
    node.close()


def test_slow_remote_connections_do_not_delay_local_ones(listener, patient, capfd):
    slow = [connect(listener, remote=True) for _ in range(100)]
    began = time.monotonic()
    client = knock(listener)
    client.send({"op": "why"})
    listener.set_failure("over")
    assert client.receive(60)[0] == {"error": "over"}
    assert time.monotonic() - began < PATIENCE_S / 2
    for sender in slow:
        sender.close()
    until = time.monotonic() + 60
    while listener.refused < 100 and time.monotonic() < until:
        time.sleep(0.1)
    wait_for_handshakes()  # a refusal is counted before it is logged
    assert listener.refused == 100
    errors = capfd.readouterr().err.splitlines()
    assert len(errors) == 10
    assert errors[0].startswith("hearth: 127.0.0.1 was refused at a node's listener: ")


def test_the_feed_listener_listens_on_one_interface(listener):
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", listener.port), 5)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (("another", "feed", NODE), "rejected the token"),
        ((KEY, "reservation", NODE), "rejected the token"),
        ((KEY, "control", NODE), "rejected the token"),
        ((KEY, "feed", NODE + 1), "no such rank"),
    ],
    ids=["another key", "another service", "the rendezvous", "another node"],
)
@pytest.mark.parametrize("remote", [False, True])
def test_a_client_with_another_key_or_service_is_refused(listener, terms, words, remote, capfd):
    key, service, node = terms
    key = bytes(32).hex() if key == "another" else key
    offer = feed_terms(key, node) if service == "feed" else handshake_terms(key, service, node)
    with pytest.raises(PermissionError, match=words) as refusal:
        knock(listener, offer, remote)
    assert KEY not in str(refusal.value)
    wait_for_handshakes()
    with pytest.raises(TimeoutError):
        listener.node.receive(0)
    assert listener.refused == 1
    errors = capfd.readouterr().err
    assert "was refused at a node's listener: " in errors
    assert KEY not in errors


def test_an_impostor_at_a_listeners_address_receives_no_rows():
    ours, theirs = socket.socketpair()

    def accept():
        impostor = Channel(theirs)
        with suppress(OSError):
            impostor.accept_handshake(feed_terms(bytes(32).hex(), NODE))
        impostor.close()

    thread = threading.Thread(target=accept)
    thread.start()
    with pytest.raises(PermissionError):
        Channel(ours).offer_handshake(feed_terms(KEY, NODE))
    thread.join(60)


def test_a_failed_node_reports_its_error_to_authenticated_clients(listener):
    listener.set_failure("worker:0 failed: no memory")
    listener.set_failure("a consequence")
    for greeting in ({"op": "feed", "feed": "f"}, {"op": "why"}):
        client = knock(listener)
        client.send(greeting)
        assert client.receive(60)[0] == {"error": "worker:0 failed: no memory"}
    text = "worker:0 failed: no memory"
    assert listener.errors == [{"event": "feed_error", "feed": "f", "text": text, "timeout": False}]


def test_the_rendezvous_drops_random_frames():
    from hearth.native._core import Coordinator, Member, new_token

    token = new_token()
    coordinator = Coordinator(world=1, token=token)
    address = ("127.0.0.1", coordinator.port())
    send_noise(lambda: socket.create_connection(address, 5), random.Random(5))
    assert coordinator.refused() == CONNECTIONS
    member = Member(host=address[0], port=address[1], token=token, rank=0, world=1)
    assert member.reserve('{"a": 1}') == [{"a": 1}]
    assert coordinator.next_event(0) is None
    member.done()
    coordinator.close()


def test_invalid_frames_of_an_authenticated_client_are_harmless(monkeypatch):
    monkeypatch.setenv("TFOS_SERVER_HOST", "127.0.0.1")
    noise = random.Random(6)
    server = reservation.Server(1)
    client = reservation.Client(server.start())
    kinds = ["REG?", "", "query", noise.randbytes(9).hex(), "__class__"]
    frames = [json.dumps({"type": noise.choice(kinds), "data": noise.random()}) for _ in range(500)]
    wire = socket.socket(fileno=os.dup(client.sock.fileno()))
    wire.setblocking(True)
    try:
        pipelined = b"".join(struct.pack(">I", len(f)) + f.encode() for f in frames)
        for _ in range(FRAMES // len(frames)):
            wire.sendall(pipelined)
            assert all(client.receive(client.sock) == {"data": "ERR"} for _ in frames)
        assert client.get_reservations() == []
    finally:
        wire.close()
        client.close()
        server.stop()


def test_random_frames_are_harmless():
    noise = random.Random(2)
    for _ in range(CONNECTIONS):
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.sendall(noise.randbytes(noise.randrange(0, 64)))
        channel = Channel(ours)
        with pytest.raises((EOFError, ValueError, OSError)):
            channel.receive(60)
        channel.close()


def test_a_frame_over_the_limit_allocates_no_memory():
    ours, theirs = socket.socketpair()
    theirs.sendall(struct.pack(">I", MAX_FRAME_BYTES + 1))
    with pytest.raises(ValueError, match="over the limit"):
        Channel(ours).receive(60)


def test_a_reservation_server_drops_random_frames(monkeypatch):
    monkeypatch.setenv("TFOS_SERVER_HOST", "127.0.0.1")
    server = reservation.Server(1)
    address = server.start()
    try:
        send_noise(lambda: socket.create_connection(address, 5), random.Random(3))
        assert not server.done
        assert server.reservations.get() == []
        client = reservation.Client(address)
        assert client.register({"node": 1}) == "OK"
        assert client.await_reservations() == [{"node": 1}]
        assert client.request_stop() == "OK"
        assert server.done
    finally:
        server.stop()


def test_a_client_of_another_process_needs_the_key(monkeypatch):
    server = reservation.Server(1)
    address = server.start()
    try:
        monkeypatch.setattr(reservation, "_keys", {})
        with pytest.raises(PermissionError, match="TFOS_SERVER_KEY"):
            reservation.Client(address)
        monkeypatch.setenv("TFOS_SERVER_KEY", server.key.hex())
        client = reservation.Client(address)
        assert client.get_reservations() == []
        client.close()
    finally:
        server.stop()


def test_reservations_wait_for_all_and_report_the_missing_ones():
    server = reservation.Server(2)
    address = server.start()
    try:
        with pytest.raises(TimeoutError, match=r"timed out waiting for reservations.*2 of 2"):
            server.await_reservations(None, {}, 0.1)
        clients = [reservation.Client(address) for _ in range(2)]
        for number, client in enumerate(clients):
            client.register(number)
        assert sorted(server.await_reservations(None, {}, 10)) == [0, 1]
        assert server.reservations.done()
        assert server.reservations.remaining() == 0
    finally:
        server.stop()


def test_keys_do_not_print():
    from hearth.cluster.driver.meta import Key
    from hearth.cluster.feed_spec import FeedSpec

    key = Key("ab" * 32)
    assert "abab" not in repr({"token": key})
    assert json.dumps(key) == f'"{"ab" * 32}"'
    assert "abab" not in repr(FeedSpec(token=key, nodes=(), queue="q", timeout_s=1, feed="f"))
