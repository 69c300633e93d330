"""Unexpected frames in a feed's threads soon raise an error in the thread that is waiting."""

import os
import socket
import struct
import threading
import time

import pyarrow as pa
import pytest
from hearth.native._core import RingReader, RingWriter

from hearth.cluster import relay
from hearth.cluster.channel import Channel
from hearth.cluster.errors import NodeError
from hearth.cluster.node.feed_server import FeedServer

KEY = bytes(range(32))
ODD_FRAMES = {
    "no operation": {"x": 1},
    "rows without a length": {"op": "rows"},
    "rows with a length of a wrong type": {"op": "rows", "bytes": "many"},
    "rows with zero bytes": {"op": "rows", "bytes": 0},
    "more rows than may travel at once": {"op": "rows", "bytes": relay._MAX_ROWS_BYTES + 1},
    "rows that are not Arrow": {"op": "rows", "bytes": 4},
}


def pair():
    ours, theirs = socket.socketpair()
    return Channel(ours), theirs


def wait_for_end(channel):
    """Receives until the connection ends, which must take only seconds; returns the messages."""
    found = []
    with pytest.raises((EOFError, ConnectionError)):
        while True:
            found.append(channel.receive(60)[0])
    return found


@pytest.mark.parametrize("frame", [name for name in ODD_FRAMES if name != "no operation"])
def test_an_invalid_frame_closes_both_sides_of_a_relay(frame):
    task, theirs = pair()
    node = Channel(relay.at_node(theirs))
    message, fds = node.receive(60, descriptors=4)
    assert message == {"op": "rings"}
    rows, results = RingReader.attach(*fds[:2]), RingWriter.attach(*fds[2:])
    task.send(ODD_FRAMES[frame], data=b"abcd" if frame == "rows that are not Arrow" else b"")
    (reply,) = wait_for_end(task)
    assert reply["error"].startswith("cannot relay rows between hosts: ")
    wait_for_end(node)
    with pytest.raises(ConnectionError):
        rows.next(5)
    assert not results.write(pa.record_batch({"n": [1]}), 5)


def test_a_relay_takes_rows_up_to_its_limit_and_no_byte_of_more(monkeypatch):
    """After a length over the limit, no byte of the message is read."""
    task, theirs = pair()
    node = Channel(relay.at_node(theirs))
    _, fds = node.receive(60, descriptors=4)
    rows, results = RingReader.attach(*fds[:2]), RingWriter.attach(*fds[2:])
    for size in (2 << 20, 3 * relay.RING_BYTES):  # the second row is larger than a ring
        batch = pa.record_batch({"x": [b"x" * size]})
        stream = relay._as_stream(batch)
        task.send({"op": "rows", "bytes": len(stream)}, data=stream)
        assert pa.record_batch(rows.next(60)[1]).equals(batch)
    before = peak_kb()
    task.send({"op": "rows", "bytes": 1 << 40})
    (reply,) = wait_for_end(task)
    assert f"announced {1 << 40} bytes" in reply["error"]
    assert peak_kb() - before < 8 << 10
    results.close()


def test_the_rings_of_hundreds_of_relays_share_a_limit():
    """Each ring has at least its minimum size, and a closed relay frees its share of the limit."""

    def opened():
        task, theirs = pair()
        node = Channel(relay.at_node(theirs))
        _, fds = node.receive(60, descriptors=4)
        sizes = [os.fstat(fd).st_size for fd in (fds[0], fds[2])]
        rings = RingReader.attach(*fds[:2]), RingWriter.attach(*fds[2:])
        return sizes, (task, node, *rings)

    first, kept = opened()
    held, sizes = [kept], [first]
    for _ in range(199):
        found, kept = opened()
        held.append(kept)
        sizes.append(found)
    # A ring's memory file has twice the ring's size, because it includes a window of equal size.
    rows, results = (sum(column) for column in zip(*sizes, strict=True))
    assert rows <= 2 * (relay._NODE_BYTES + 200 * relay._LEAST_ROWS_BYTES) + 200 * 8192
    assert results <= 2 * (relay._NODE_BYTES + 200 * relay._LEAST_RESULTS_BYTES) + 200 * 8192
    assert sizes[-1][0] >= relay._LEAST_ROWS_BYTES and sizes[-1][1] >= relay._LEAST_RESULTS_BYTES
    for task, node, *_ in held:
        task.close()
        wait_for_end(node)
    for thread in threading.enumerate():
        if thread.name == "hearth-relay":
            thread.join(60)
    # It is larger if a relay of an earlier test used some of the limit when the first was opened.
    assert opened()[0] >= first


def peak_kb():
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


@pytest.mark.parametrize(
    "frame",
    [{"x": 1}, {"op": "partition"}, {"op": "rings"}, {"op": "partition", "queue": "none"}],
)
def test_a_frame_that_a_node_does_not_understand_is_answered_with_an_error(frame):
    server = FeedServer(["input"], lambda event: None)
    task, theirs = pair()
    server.attach(theirs, from_remote=False)
    task.send(frame)
    (reply,) = wait_for_end(task)
    assert "a feed's connection failed: " in reply["error"]


def test_bytes_that_are_not_a_frame_end_a_feed(monkeypatch):
    """The feed's program continues with other partitions; the feed task gets the error."""
    from hearth.cluster.node.node_manager import NodeManager
    from hearth.tensorflowonspark.TFNode import DataFeed

    server = FeedServer(["input"], lambda event: None)
    ours, theirs = socket.socketpair()
    task = Channel(ours)
    server.attach(theirs, from_remote=False)
    ring, results = RingWriter(1 << 20), RingReader(1 << 20)
    task.send({"op": "rings"}, fds=(*ring.fds(), *results.fds()))
    where = {"feed": "f", "index": 0, "queue": "input", "mode": "train", "fenced": False}
    task.send({"op": "partition", **where, "format": "arrow", "batched": True, "keep": False})
    ring.write(pa.record_batch({"n": [1, 2]}), 5)
    feed, taken = DataFeed(NodeManager(server)), []

    def read():
        while not feed.should_stop():
            taken.extend(feed.next_batch(2))

    program = threading.Thread(target=read)
    program.start()
    deadline = time.monotonic() + 60
    while not taken and time.monotonic() < deadline:
        time.sleep(0.01)
    os.write(task.fileno(), struct.pack(">I", 3) + b"abc")
    reply = wait_for_end(task)
    assert "a feed's connection failed: " in reply[-1]["error"]
    server.end()
    program.join(60)
    assert not program.is_alive()
    assert taken == [(1,), (2,)]


def test_a_node_that_talks_nonsense_ends_the_wait_of_its_task(monkeypatch):
    from hearth.cluster.feed_spec import FeedSpec
    from hearth.cluster.task import feed_task

    ours, theirs = socket.socketpair()
    node = Channel(theirs)
    monkeypatch.setattr(feed_task.Connection, "_open", lambda *_: Channel(ours))
    node.send({"op": "welcome"})
    node_facts = {"host_name": socket.gethostname(), "job_name": "worker", "task_index": 0}
    spec = FeedSpec(
        KEY.hex(), ({**node_facts, "addr": "a", "executor_pid": os.getpid()},), "input", 60.0, "f"
    )

    def nonsense():
        for _ in range(2):  # receives the messages for rings and partition
            node.receive(60, descriptors=4)
        os.write(node.fileno(), struct.pack(">I", 4) + b"\xff\xff[]")

    threading.Thread(target=nonsense, daemon=True).start()
    began = time.monotonic()
    with pytest.raises(NodeError, match="sent an invalid message"):
        feed_task.feed(spec, 0, iter([pa.record_batch({"n": [1]})]))
    assert time.monotonic() - began < 30


def test_an_invalid_event_of_a_node_fails_the_cluster():
    from hearth.native._core import Coordinator, FeedLedger, Member, new_token

    from hearth.cluster.driver.watch import ClusterWatch

    token, reasons = new_token(), []
    coordinator = Coordinator(world=1, token=token)
    watch = ClusterWatch(coordinator, {"worker": [0]}, reasons.append, FeedLedger())
    member = Member(host="127.0.0.1", port=coordinator.port(), token=token, rank=0, world=1)
    member.reserve("{}")
    member.send_event('{"event": "rows"}')  # lacks the name of a feed
    assert not watch.wait_done([0], 10)
    with pytest.raises(
        NodeError, match=r"cannot read its nodes' events: InvalidArgumentError: .*'feed' not found"
    ):
        watch.check()
    assert len(reasons) == 1
    member.done("{}")
    watch.close()
