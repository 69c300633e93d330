"""A node releases the resources of feed tasks' invalid connections."""

import gc
import os
import socket
import threading
from contextlib import closing, contextmanager

import pytest

from hearth.cluster.channel import Channel
from hearth.cluster.node.feed_server import FeedServer


@contextmanager
def attached(server):
    theirs, ours = socket.socketpair()
    server.attach(theirs, from_remote=False)
    with closing(Channel(ours)) as channel:
        yield channel


def open_descriptors():
    gc.collect()  # closes leftovers of earlier tests now, not between two counts
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(("op", "count"), [("rings", 3), ("rings", 8), ("end", 2)])
def test_descriptors_of_a_refused_message_are_closed(op, count):
    earlier = set(threading.enumerate())  # an earlier test's connection may still be open
    server = FeedServer(["input"], lambda event: None)
    before = open_descriptors()
    with attached(server) as task, open("/dev/null") as file:
        task.send({"op": op, "entries": 0}, fds=[file.fileno()] * count)
        assert f"got {count} descriptors with message '{op}'" in task.receive(5)[0]["error"]
        with pytest.raises((EOFError, OSError)):
            task.receive(5)
        server.close()
    for thread in set(threading.enumerate()) - earlier:
        if thread.name == "hearth-feed":  # the refused connection's thread
            thread.join(60)
    assert open_descriptors() == before


def test_a_connection_without_a_thread_is_closed(monkeypatch, capfd):
    server = FeedServer(["input"], lambda event: None)

    def no_thread(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with attached(server) as task, pytest.raises(EOFError):
            task.receive(5)
    assert "can't start new thread" in capfd.readouterr().err
    server.close()
