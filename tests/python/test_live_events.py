"""A training's events reach a client of Spark Connect by a separate connection, or later."""

from __future__ import annotations

import dataclasses
import socket
import threading

import pytest

from hearth.caffe_jobs.live_events import EventSender, LiveEvents


class Access:
    """A client whose server and executors are on this host."""

    def __init__(self, host="127.0.0.1"):
        self.host = host

    def coordinator_hosts(self):
        return self.host, self.host

    def conf(self, key, default):
        return default


def kept(*numbers):
    return [{"event": "progress", "number": number, "seconds": 1.0} for number in numbers]


@pytest.fixture
def live():
    events = LiveEvents(Access())
    yield events
    events.close()


@pytest.fixture
def taken(live):
    """Receives events in a thread; call the result to end the thread and get the events."""
    received = []
    thread = threading.Thread(target=live.take_all, args=(received.append,))
    thread.start()

    def end():
        live.close()
        thread.join(60)
        assert not thread.is_alive()
        return received

    yield end
    end()


def test_live_events_arrive_in_order_and_are_not_repeated(live):
    received = []

    def on_event(event):
        received.append(event["iteration"])
        if len(received) == 3:  # close() drops events in flight
            live.close()

    sender = EventSender(live.listener)
    for number in (1, 2, 5):
        sender.put(number, {"event": "progress", "iteration": number})
    live.take_all(on_event)
    sender.close()
    assert received == [1, 2, 5]
    assert live.missed(kept(1, 2, 4)) == kept(4)
    assert live.missed(kept(1, 5)) == []


def test_a_client_that_disconnects_gets_the_rest_with_the_result(live, taken):
    sender = EventSender(live.listener)
    sender.put(1, {"event": "ready"})
    received = taken()  # disconnects, perhaps after the first
    for number in range(2, 200):
        sender.put(number, {"event": "progress"})
    sender.close()
    missed = live.missed(kept(*range(1, 200)))
    assert len([event for event in missed if event["event"] == "progress"]) == 199 - len(received)


def test_an_unreachable_client_gets_the_reason(live, taken):
    sender = EventSender(dataclasses.replace(live.listener, token="0" * 64))
    sender.put(1, {"event": "ready"})
    sender.close()
    assert taken() == []
    event, *missed = live.missed(kept(1))
    assert missed == kept(1)
    assert (
        f"rank 0's host did not reach this client at 127.0.0.1:{live.listener.port}"
        in event["text"]
    )
    assert live.missed([]) == []


def test_no_listener_without_a_local_address():
    live = LiveEvents(Access("192.0.2.1"))
    live.take_all(lambda event: pytest.fail(str(event)))
    assert live.listener is None
    assert "192.0.2.1" in live.missed(kept(1))[0]["text"]
    live.close()


def test_a_sender_without_a_client_ends_at_once():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        live = LiveEvents(Access())
        sender = EventSender(dataclasses.replace(live.listener, port=closed.getsockname()[1]))
        sender.put(1, {"event": "ready"})
        sender.close()
        assert not sender._thread.is_alive()
        live.close()


def test_its_token_is_not_printed(live):
    assert live.listener.token not in repr(live.listener)
