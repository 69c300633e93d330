"""Messages between a cluster's processes, sent and received by Python."""

import os
import signal
import socket
import threading
import time
from contextlib import closing
from functools import partial

import pytest

from hearth.cluster.channel import Channel, handshake_terms


@pytest.fixture
def pair():
    ours, theirs = (Channel(sock) for sock in socket.socketpair())
    with closing(ours), closing(theirs):
        yield ours, theirs


def test_a_message_round_trips(pair):
    class Key(str):
        pass

    message = {
        "none": None,
        "flags": [True, False],
        "numbers": [0, -1, (1 << 64) - 1, -(1 << 63), 0.1, 1e300, 2.0],
        "text": "caf\u00e9 \U0001f40d \0",
        "nested": {"": [[], {}], "pair": (1, "b"), "key": Key("k")},
    }
    pair[0].send(message)
    received, fds = pair[1].receive(5)
    assert fds == []
    assert received == {**message, "nested": {"": [[], {}], "pair": [1, "b"], "key": "k"}}
    assert [type(n) for n in received["numbers"]] == [int] * 4 + [float] * 3


def test_invalid_utf8_round_trips(pair):
    pair[0].send({"path": "caf\udce9", "\ud800": 1})
    assert pair[1].receive(5)[0] == {"path": "caf?", "?": 1}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "JSON has no such number"),
        (float("inf"), "JSON has no such number"),
        (1 << 64, "more than 64 bits"),
        (-(1 << 63) - 1, "more than 64 bits"),
        (b"bytes", "a bytes cannot be sent"),
        ({1: 2}, "must be a str, not a int"),
    ],
)
def test_values_without_json_form_are_refused_before_sending(pair, value, words):
    with pytest.raises(ValueError, match=words):
        pair[0].send({"value": value})
    pair[0].send({"op": "next"})
    assert pair[1].receive(5)[0] == {"op": "next"}


def test_a_recursive_list_is_refused(pair):
    value = []
    value.append(value)
    with pytest.raises(ValueError, match="nested deeper than 64"):
        pair[0].send({"value": value})


def test_a_long_message_arrives_complete_with_descriptors_and_rows(pair):
    message, rows = {"text": "x" * (3 << 20)}, bytes(range(256)) * 8192
    read, write = os.pipe()
    sender = threading.Thread(target=pair[0].send, args=(message, (write,), memoryview(rows)))
    sender.start()
    received, fds = pair[1].receive(5, descriptors=1)
    assert received == message
    assert pair[1].receive_data(len(rows)) == rows
    sender.join()
    os.close(write)
    assert not os.get_inheritable(fds[0])
    os.write(fds[0], b"through")
    os.close(fds[0])
    assert os.read(read, 99) == b"through"
    os.close(read)


def test_unexpected_descriptors_are_closed(pair):
    read, write = os.pipe()
    os.set_blocking(read, False)
    pair[0].send({"op": "hello"}, (write, write))
    os.close(write)
    with pytest.raises(ValueError, match="got 2 descriptors with message 'hello', expected 1"):
        pair[1].receive(5, descriptors=1)
    assert os.read(read, 1) == b""  # end of file: all write ends are closed
    os.close(read)


def test_a_closed_channel_raises_and_touches_no_other_descriptor(pair):
    number = pair[0].fileno()
    pair[0].close()
    pair[0].close()
    assert pair[0].fileno() == -1
    reused, other = socket.socketpair()
    with reused, other:
        assert number in (reused.fileno(), other.fileno())
        for use in (lambda: pair[0].send({}), pair[0].receive, lambda: pair[0].receive_data(1)):
            with pytest.raises(ConnectionError, match="closed"):
                use()
        pair[0].end()
        reused.send(b"x")
        assert other.recv(1) == b"x"
    with pytest.raises(EOFError):
        pair[1].receive(5)


def test_waits_do_not_block_other_threads_and_end_with_the_channel(pair):
    ended = []

    def wait():
        try:
            pair[1].receive()
        except EOFError:
            ended.append(True)

    thread = threading.Thread(target=wait)
    thread.start()
    deadline = time.monotonic() + 0.1
    while time.monotonic() < deadline:
        assert not ended
    pair[1].end()
    thread.join(60)
    assert ended


class Interrupted(Exception):
    pass


@pytest.fixture
def alarms():
    """Starts a timer signal ten times a second; its handler stops it and raises Interrupted."""

    def raise_it(*_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Interrupted

    before = signal.signal(signal.SIGALRM, raise_it)
    yield partial(signal.setitimer, signal.ITIMER_REAL, 0.1, 0.1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_handler_runs_during_receive(pair, alarms):
    with pytest.raises(Interrupted):
        alarms()
        pair[1].receive(60)
    pair[0].send({"op": "late"})
    assert pair[1].receive(5)[0] == {"op": "late"}


@pytest.mark.parametrize(
    ("said", "wait"),
    [
        (b"\0\0\0\x10{", lambda channel: channel.receive()),
        (b"half", lambda channel: channel.receive_data(8)),
        (b"", lambda channel: channel.send({}, data=bytes(64 << 20))),
        (b"", lambda channel: channel.offer_handshake(handshake_terms("5e" * 32, "feed"), 60)),
    ],
    ids=["message", "data", "full buffer", "handshake"],
)
def test_a_stalled_peer_does_not_delay_signal_handlers(said, wait, alarms):
    ours, theirs = socket.socketpair()
    patience = threading.Timer(30, ours.shutdown, [socket.SHUT_RDWR])
    patience.start()
    with ours, closing(Channel(theirs)) as channel:
        ours.send(said)
        with pytest.raises(Interrupted):
            alarms()
            wait(channel)
        assert patience.is_alive()
        patience.cancel()
        with pytest.raises((EOFError, OSError)):  # half a message was received
            channel.receive(5)


def test_an_invalid_key_is_not_printed():
    with pytest.raises(ValueError, match="64 hex digits") as error:
        handshake_terms("5ec2e7", "feed")
    assert "5ec2e7" not in str(error.value)
    assert "ab" * 32 not in repr(handshake_terms("ab" * 32, "feed"))
