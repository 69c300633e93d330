"""Partition files of datasets: lost and concurrent attempts; files persisted for the next start."""

from __future__ import annotations

import os
import random
import socket
import threading
from dataclasses import replace

import pyarrow as pa
import pytest
from hearth.native._core import EpochReader, PartitionSender, PartitionWriter

from hearth import HearthError
from hearth.cluster.channel import Channel
from hearth.cluster.node.datasets import keeper
from hearth.cluster.node.datasets.files import CompleteFile, PartitionFiles
from hearth.cluster.node.datasets.program import NodeDatasets

KEY = "ab" * 32


def batch(first, count):
    return pa.record_batch({"id": pa.array(range(first, first + count), pa.int64())})


class Writer:
    """Writes a partition like a Spark task, but step by step as the test requests."""

    def __init__(self, files, attempt, partition=0):
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        greeting = {"dataset": "train", "partition": partition, "attempt": attempt}
        peer = Channel(theirs)
        self.served = threading.Thread(target=self._serve, args=(files, peer, greeting))
        self.served.start()
        self.answer, fds = self.channel.receive(10, descriptors=1)
        self.writer = PartitionWriter(fds[0]) if fds else None

    def _serve(self, files, peer, greeting, remote=False):
        try:
            files.serve(peer, greeting, remote)
        except (OSError, EOFError):
            pass
        finally:
            peer.close()

    def write(self, rows):
        size, count = self.writer.write(rows)
        self.total = size, count
        self.channel.send({"op": "grown", "bytes": size, "rows": count})

    def end(self):
        size, count = self.total
        digest = f"{self.writer.hash:016x}"
        self.channel.send({"op": "end", "bytes": size, "rows": count, "hash": digest})
        assert self.channel.receive(10)[0] == {"op": "kept"}
        self.served.join()

    def die(self):
        self.channel.close()
        self.served.join()


class Node:
    """A supervisor's partition files, connected by a channel to a program's datasets."""

    def __init__(self, partitions=1):
        ours, theirs = socket.socketpair()
        self.events = []
        self.files = PartitionFiles(Channel(ours), self.events.append)
        self._program = Channel(theirs)
        self.datasets = NodeDatasets(["train"])
        plan = {"op": "dataset_plan", "dataset": "train", "rank": 0, "world": 1}
        self.datasets.handle({**plan, "owners": [0] * partitions, "identity": ""}, [])
        self.rows = self.datasets.open("train").rows
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            message, fds = self._program.receive(descriptors=1)
            self.datasets.handle(message, fds)

    def take(self, position, count):
        reader = EpochReader(self.rows, 0, "none")
        reader.start(0)
        return reader.take(position, count, False).gather("id").tolist()


@pytest.fixture
def node():
    return Node()


def test_rows_can_be_taken_before_their_partition_is_complete(node):
    writer = Writer(node.files, 1)
    writer.write(batch(0, 10))
    assert node.take(0, 10) == list(range(10))
    writer.write(batch(10, 10))
    writer.end()
    assert node.take(5, 15) == list(range(5, 20))
    assert [(event["rows"], event["partition"]) for event in node.events] == [(20, 0)]


def test_another_attempt_replaces_a_lost_one(node):
    first = Writer(node.files, 1)
    first.write(batch(0, 10))
    assert node.take(0, 10) == list(range(10))
    first.die()
    second = Writer(node.files, 2)
    second.write(batch(0, 4))
    second.write(batch(4, 16))
    second.end()
    assert node.take(8, 12) == list(range(8, 20))


def test_an_attempt_that_differs_from_rows_already_read_is_an_error(node):
    first = Writer(node.files, 1)
    first.write(batch(0, 10))
    node.take(0, 10)
    first.die()
    second = Writer(node.files, 2)
    second.write(batch(3, 20))
    second.end()
    with pytest.raises(Exception, match="attempt 2 of partition 0 has other rows"):
        node.take(0, 20)


def test_the_first_complete_attempt_wins(node):
    slow, quick = Writer(node.files, 1), Writer(node.files, 2)
    slow.write(batch(0, 5))
    quick.write(batch(0, 20))
    quick.end()
    assert node.take(0, 20) == list(range(20))
    slow.write(batch(5, 15))
    slow.end()
    assert len(node.events) == 1
    assert Writer(node.files, 3).answer["op"] == "have"


def test_a_complete_partition_uses_disk_for_its_rows_only(node):
    slow, quick = Writer(node.files, 1), Writer(node.files, 2)
    slow.write(batch(0, 20))
    quick.write(batch(0, 20))
    quick.end()
    (kept,) = node.files.complete()
    assert os.fstat(kept.fd).st_blocks * 512 <= 65536
    slow.end()
    with node.files._lock:
        assert list(node.files._partitions["train", 0].attempts) == [2]


def test_rows_for_an_ended_program_are_counted_for_other_ranks(node):
    writer = Writer(node.files, 1)
    writer.write(batch(0, 20))
    writer.end()
    node.files.over = True
    assert Writer(node.files, 2).answer["op"] == "have"
    late = Writer(node.files, 3, partition=1)
    assert late.answer == {"op": "over"}
    late.channel.send({"op": "counted", "rows": 7})
    assert late.channel.receive(10)[0] == {"op": "kept"}
    event = {"event": "dataset", "dataset": "train", "partition": 1, "rows": 7, "hash": ""}
    assert node.events[-1] == event


def test_a_keeper_passes_complete_files_to_authenticated_supervisors(node, monkeypatch):
    writer = Writer(node.files, 1)
    writer.write(batch(0, 20))
    writer.end()
    Writer(node.files, 7).die()
    monkeypatch.setattr(keeper, "_LINGER_S", 0.0)
    done = threading.Thread(
        target=keeper.keep, args=(node.files.complete(), "c1", KEY, os.getppid())
    )
    done.start()
    while not keeper._keepers("c1"):
        pass
    assert keeper.take_over("c1", "cd" * 32) == []
    assert keeper.take_over("c2", KEY) == []
    taken = keeper.take_over("c1", KEY)
    assert [(file.dataset, file.partition, file.rows) for file in taken] == [("train", 0, 20)]
    done.join()

    after = Node()
    after.files.adopt(taken)
    assert after.files.show_adopted("train", [0]) == {0}
    assert after.take(0, 20) == list(range(20))
    assert Writer(after.files, 8).answer == {"op": "have", "rows": 20, "hash": taken[0].digest}


def test_files_of_partitions_that_another_rank_owns_are_closed(node):
    with open("/dev/null", "rb") as file:
        kept = CompleteFile("train", 3, 0, 0, "00", os.dup(file.fileno()))
        node.files.adopt([kept])
        assert node.files.show_adopted("train", [0]) == set()
        with pytest.raises(OSError):
            os.fstat(kept.fd)


def test_a_writer_waits_for_the_decision_on_persisted_files(node):
    with open("/dev/null", "rb") as file:
        node.files.adopt([CompleteFile("train", 0, 0, 0, "00", os.dup(file.fileno()))])
        closed = threading.Event()
        answers = []

        def write():
            answers.append(Writer(node.files, 1))
            closed.set()

        threading.Thread(target=write, daemon=True).start()
        assert not closed.wait(0.2)
        assert node.files.show_adopted("train", ()) == set()
        assert closed.wait(60)
        assert answers[0].answer["op"] == "file"


class RemoteWriter(Writer):
    """A writer on another host, which sends its rows over the network."""

    def __init__(self, files, attempt, partition=0):
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        greeting = {"dataset": "train", "partition": partition, "attempt": attempt}
        peer = Channel(theirs)
        self.served = threading.Thread(target=self._serve, args=(files, peer, greeting, True))
        self.served.start()
        assert self.channel.receive(10)[0] == {"op": "send"}
        self.sender = PartitionSender(self.channel.fileno())

    def write(self, rows):
        self.sender.write(rows)

    def end(self):
        self.sender.end()
        assert self.channel.receive(10)[0] == {"op": "kept"}
        self.served.join()


def test_remote_rows_are_the_same(node):
    writer = RemoteWriter(node.files, 1)
    writer.write(batch(0, 10))
    assert node.take(0, 10) == list(range(10))
    writer.write(batch(10, 10))
    writer.end()
    assert node.take(0, 20) == list(range(20))
    local = Node()
    same = Writer(local.files, 1)
    same.write(batch(0, 20))
    same.end()
    assert [event["hash"] for event in local.events] == [event["hash"] for event in node.events]


def test_a_lost_remote_writer_is_replaced(node):
    writer = RemoteWriter(node.files, 1)
    writer.write(batch(0, 10))
    assert node.take(0, 5) == list(range(5))
    writer.die()
    again = Writer(node.files, 2)
    again.write(batch(0, 20))
    again.end()
    assert node.take(0, 20) == list(range(20))


@pytest.mark.parametrize("kind", [Writer, RemoteWriter])
def test_a_partition_is_complete_without_a_program_that_reads_it(node, kind):
    """Spark may deliver one dataset after another while the program waits for the last of them."""
    writer = kind(node.files, 1)
    large = pa.record_batch({"x": [b"x" * (1 << 20)]})
    for _ in range(32):  # more than the sockets and rings can buffer
        writer.write(large)
    writer.end()
    assert [event["rows"] for event in node.events] == [32]


@pytest.mark.parametrize("cut", [True, False])
def test_a_changed_persisted_file_is_not_used(node, caplog, cut):
    writer = Writer(node.files, 1)
    writer.write(batch(0, 20))
    writer.end()
    (kept,) = node.files.complete()
    if cut:
        os.truncate(kept.fd, kept.size - 64)
    else:
        os.pwrite(kept.fd, b"\x2a", kept.size - 64)  # overwrites a value
    after = Node()
    after.files.adopt([replace(kept, fd=os.dup(kept.fd))])
    assert after.files.show_adopted("train", [0]) == set() and after.events == []
    assert "dataset train: the persisted file of partition 0 is invalid" in caplog.text
    again = Writer(after.files, 2)
    again.write(batch(0, 20))
    again.end()
    assert after.take(0, 20) == list(range(20))


class Attempts:
    """Concurrent attempts at one partition; each writes its rows in different batches."""

    def __init__(self, node, partition, first, count, chance):
        self._node, self._partition, self._chance = node, partition, chance
        self._first, self._count, self._number = first, count, 0
        self._running = []  # [writer, rows that it has written]
        self.over = False

    def step(self):
        """Lets one attempt start, write, die or end."""
        fewer = not self._running or (len(self._running) < 3 and self._chance.random() < 0.2)
        if fewer and not self.over:
            self._number += 1
            kind = self._chance.choice([Writer, RemoteWriter])
            self._running.append([kind(self._node.files, self._number, self._partition), 0])
            return
        attempt = self._chance.choice(self._running)
        writer, written = attempt
        if self._chance.random() < 0.15:
            writer.die()
            self._running.remove(attempt)
        elif written < self._count:
            attempt[1] += (rows := self._chance.randint(1, self._count - written))
            writer.write(batch(self._first + written, rows))
        else:
            writer.end()
            self._running.remove(attempt)
            self.over = True

    def end(self):
        """Runs on until all attempts have ended, because Spark may not stop them in time."""
        while self._running:
            self.step()


@pytest.mark.parametrize("draw", range(12))
def test_each_row_is_read_once_despite_failed_and_racing_attempts(draw):
    chance = random.Random(draw)
    counts = [chance.randint(1, 60) for _ in range(chance.randint(1, 6))]
    node, taken, failures, sizes = Node(len(counts)), [], [], random.Random(-draw)

    def read():
        reader = EpochReader(node.rows, 0, "none")
        reader.start(0)
        try:
            while ids := reader.take(len(taken), sizes.randint(1, 9), False).gather("id").tolist():
                taken.extend(ids)
        except HearthError as error:
            failures.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    firsts = [sum(counts[:number]) for number in range(len(counts))]
    every = [Attempts(node, n, firsts[n], count, chance) for n, count in enumerate(counts)]
    while running := [attempts for attempts in every if not attempts.over]:
        chance.choice(running).step()
    for attempts in every:
        attempts.end()
    reader.join(60)
    assert not failures
    assert taken == list(range(sum(counts)))
    assert sorted((e["partition"], e["rows"]) for e in node.events) == list(enumerate(counts))
