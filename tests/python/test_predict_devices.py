"""predict(devices=...): its tasks and a node that serves them, in one process without Spark."""

from __future__ import annotations

import os
import socket
import threading

import numpy as np
import pyarrow as pa
import pytest

from hearth.cluster.channel import Channel
from hearth.cluster.feed_spec import FeedSpec
from hearth.cluster.node.data_feed import DataFeed
from hearth.cluster.node.feed_server import FeedServer
from hearth.cluster.task import feed_task
from hearth.ml import predictors, serving
from hearth.ml.executor_prediction import Prediction
from hearth.native.failure import TaskError

MADE = pa.schema([("y", pa.list_(pa.float32()))])
NODE = {
    "addr": "a node",
    "executor_pid": os.getpid(),
    "executor_id": 0,
    "host_name": socket.gethostname(),
    "job_name": "worker",
    "task_index": 0,
}
WAIT_S = 60


class Node:
    """A node's feed; `serve` adds the threads of serve()."""

    def __init__(self, monkeypatch):
        self.server = FeedServer((serving._FEED,), lambda event: None)
        monkeypatch.setattr(feed_task.Connection, "_open", self._open)
        self.calls = threading.Lock()

    def _open(self, spec, greeting):
        if greeting["op"] == "why":
            ours, theirs = map(Channel, socket.socketpair())
            theirs.send({"error": "worker:0 was killed by SIGKILL"})
            return ours
        ours, theirs = socket.socketpair()
        channel = Channel(theirs)
        channel.send({"op": "welcome"})
        self.server.attach(socket.socket(fileno=channel.detach()), False)
        return Channel(ours)

    def get_queue(self, name):
        return self.server.queues.get(name)

    def get_data_feed(self, train_mode, qname_in):
        return DataFeed(self, train_mode, qname_in)

    def serve(self, function, batch_size=4, threads=3, beat_s=0.0):
        def alone(x):
            assert self.calls.acquire(blocking=False), "two calls at a time"
            try:
                return function(x)
            finally:
                self.calls.release()

        program = predictors.program_of(len, None, ["x"], ["y"])
        predictor = predictors.Predictor.__new__(predictors.Predictor)
        predictor._outputs, predictor._function, predictor._by_name = ("y",), alone, False
        server = serving._Server(predictor, ("y",), batch_size)
        for _ in range(threads):
            threading.Thread(target=server.run, args=(self,), daemon=True).start()
        spec = FeedSpec(
            "t", (NODE,), serving._FEED, WAIT_S, "f", "inference", "arrow", beat_s=beat_s
        )
        return lambda batches: serving.served(
            spec, Prediction(program, ("x",), ("k",), batch_size), MADE, iter(batches)
        )


@pytest.fixture
def node(monkeypatch):
    made = Node(monkeypatch)
    yield made
    made.server.end()
    feed_task._close_connections()


def batch(first, count):
    numbers = np.arange(first, first + count)
    return pa.record_batch({"k": [f"{n}" for n in numbers], "x": numbers})


def in_order(found, first=0):
    keys = [key for part in found for key in part["k"].to_pylist()]
    values = [value for part in found for value in part["y"].to_pylist()]
    assert keys == [f"{n}" for n in range(first, first + len(keys))]
    assert values == [[2.0 * float(key), float(key)] for key in keys]
    return len(keys)


def twice(x):
    return np.stack([x * 2, x], axis=1).astype("f4")


def test_a_task_that_waits_for_its_rows_does_not_block_others(node):
    task = node.serve(twice)
    go_on, results = threading.Event(), {}

    def slow():
        yield batch(0, 6)
        assert go_on.wait(WAIT_S)
        yield batch(6, 3)

    def run():
        results["slow"] = list(task(slow()))

    waiting = threading.Thread(target=run, daemon=True)
    waiting.start()
    assert in_order(list(task([batch(100, 5), batch(105, 0), batch(105, 6)])), 100) == 11
    go_on.set()
    waiting.join(WAIT_S)
    assert in_order(results["slow"]) == 9


def test_values_that_the_model_refuses_fail_their_task_alone(node):
    def model(x):
        if (x == 6).any():
            raise ValueError("no six")
        return twice(x)

    task = node.serve(model)
    with pytest.raises(ValueError, match="no six; in rows 4 to 7 of partition 0"):
        list(task([batch(0, 10)]))
    assert in_order(list(task([batch(10, 10)])), 10) == 10


def test_a_lost_node_is_an_error_instead_of_a_hang(node):
    began, over = threading.Event(), threading.Event()

    def model(x):
        began.set()
        assert over.wait(WAIT_S)
        return twice(x)

    task = node.serve(model)
    errors = []

    def run():
        try:
            list(task([batch(0, 4), batch(4, 1)]))
        except TaskError as error:
            errors.append(str(error))

    waiting = threading.Thread(target=run, daemon=True)
    waiting.start()
    assert began.wait(WAIT_S)
    for session in list(node.server._sessions):  # as when the node's process ends
        session._channel.end()
        session._link.close()
    waiting.join(WAIT_S)
    over.set()
    assert not waiting.is_alive()
    assert "worker:0 was killed by SIGKILL" in errors[0]


def test_a_node_that_gives_no_sign_of_life_is_named(node):
    began, over = threading.Event(), threading.Event()

    def model(x):
        node.server.beat()
        began.set()
        assert over.wait(WAIT_S)
        return twice(x)

    task = node.serve(model, beat_s=0.3)
    try:
        with pytest.raises(TaskError, match=r"worker:0 .*has sent nothing for 0.3 s: its program"):
            list(task([batch(0, 4)]))
        assert began.is_set()
    finally:
        over.set()


def test_a_model_that_hangs_is_an_error_of_the_node_but_the_first_call_may_take_long(monkeypatch):
    monkeypatch.setattr(serving, "_CALL_S", 0.0)
    server = serving._Server(lambda arrays: server.check(), ("y",), 4)
    server._call({})
    with pytest.raises(TimeoutError, match="has not returned from a call for 0 s"):
        server._call({})


def test_an_error_of_the_rows_ends_the_task(node):
    task = node.serve(twice)
    bad = pa.record_batch({"k": ["0", "1"], "x": pa.array([1, None])})
    with pytest.raises(ValueError, match=r"'x' .* has 1 null .* first in row 5 of partition 0"):
        list(task([batch(0, 4), bad]))
    assert in_order(list(task([batch(10, 3)])), 10) == 3
