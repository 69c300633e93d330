"""A Caffe training's event files, read by TensorFlow's reader and messages."""

from __future__ import annotations

import math
import time

import pytest
from hearth.native._core import RunRecord


def progress(iteration, loss):
    return {
        "event": "progress", "iteration": iteration, "loss": loss, "lr": 0.01,
        "images_per_s": 100.0, "outputs": {"loss": [loss]},
    }  # fmt: skip


NET = {
    "event": "net",
    "name": "LeNet",
    "layers": [
        {"name": "data", "type": "CoSData", "inputs": []},
        {"name": "ip", "type": "InnerProduct", "inputs": ["data"]},
    ],
}


HISTOGRAM = {
    "event": "histogram", "iteration": 2, "tag": "weights/ip/0",
    "least": -1.0, "most": 2.0, "sum": 3.5, "sum_squares": 7.25, "counts": [3, 0, 4],
}  # fmt: skip


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    from tensorflow.compat.v1 import train

    folder = tmp_path_factory.mktemp("run")
    record = RunRecord(str(folder), time.time())
    record.take({"event": "ready", "iteration": 0}, time.time())
    record.take(NET, time.time())
    for iteration in (1, 2, 3):
        record.take(progress(iteration, 1 / iteration), time.time())
    record.take({"event": "restart", "generation": 1, "reason": "rank 1 went away é"}, time.time())
    record.take({"event": "ready", "iteration": 1}, time.time())
    record.take(progress(2, None), time.time())  # None: JSON writes null for a non-finite value
    outputs = {"accuracy": [0.75]}
    record.take({"event": "validation", "iteration": 2, "outputs": outputs}, time.time())
    record.take(HISTOGRAM, time.time())
    record.finish()
    return list(train.summary_iterator(record.path))  # verifies every checksum


def scalars(events, tag):
    return [
        (event.step, value.simple_value)
        for event in events
        for value in event.summary.value
        if value.tag == tag and value.HasField("simple_value")
    ]


def test_the_file_names_its_version_first(events):
    assert events[0].file_version == "brain.Event:2"
    assert all(abs(event.wall_time - time.time()) < 600 for event in events)


def test_scalars_have_the_outputs_names(events):
    losses = scalars(events, "loss/train")
    assert losses[:3] == [(1, 1.0), (2, 0.5), (3, pytest.approx(1 / 3))]
    assert losses[3][0] == 2 and math.isnan(losses[3][1])
    assert scalars(events, "accuracy/test") == [(2, 0.75)]
    assert scalars(events, "run/images_per_s")[0] == (1, 100.0)
    assert scalars(events, "run/restarts") == [(3, 1.0), (1, 1.0)]


def test_a_restart_makes_tensorboard_discard_later_iterations(events):
    from tensorflow.core.util.event_pb2 import SessionLog

    starts = [event for event in events if event.HasField("session_log")]
    assert [(event.step, event.session_log.status) for event in starts] == [(2, SessionLog.START)]


def test_histograms_have_their_parts_and_moments(events):
    found = [(e.step, v) for e in events for v in e.summary.value if v.HasField("histo")]
    ((step, value),) = found
    assert (step, value.tag) == (2, "weights/ip/0")
    histo = value.histo
    assert (histo.min, histo.max, histo.num, histo.sum, histo.sum_squares) == (-1, 2, 7, 3.5, 7.25)
    assert (list(histo.bucket_limit), list(histo.bucket)) == ([0, 1, 2], [3, 0, 4])


def test_messages_are_texts(events):
    import tensorflow as tf

    values = [v for event in events for v in event.summary.value if v.tag == "run/messages"]
    assert [value.metadata.plugin_data.plugin_name for value in values] == ["text"]
    assert tf.make_ndarray(values[0].tensor).item().decode() == "rank 1 went away é"


def test_the_nets_graph_is_there(events):
    from tensorflow.core.framework.graph_pb2 import GraphDef

    (graph,) = [GraphDef.FromString(e.graph_def) for e in events if e.HasField("graph_def")]
    nodes = {node.name: (node.op, list(node.input)) for node in graph.node}
    assert nodes == {"data": ("CoSData", []), "ip": ("InnerProduct", ["data"])}
