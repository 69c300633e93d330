"""A trainer too large for its container: a warning before it starts, and an error about memory."""

from __future__ import annotations

import re

import pytest

from hearth import HearthError
from hearth.caffeonspark import CaffeOnSpark, DataSource


@pytest.fixture
def large(digits) -> str:
    """A solver for a net with 80 million parameters, whose trainer needs about 1.9 GB."""
    text = (digits.folder / "lenet_cos_train_test.prototxt").read_text()
    text = re.sub(r"num_output: 500", "num_output: 95000", text)
    (digits.folder / "large_net.prototxt").write_text(text)
    return digits.solver(net='"large_net.prototxt"', max_iter=20, snapshot=0)


def test_a_container_killed_for_its_memory_is_reported_as_such(spark, digits, large, monkeypatch):
    # On a busy machine, YARN's report may take longer than the default wait.
    monkeypatch.setattr("hearth.spark.executor_memory._REASON_WAIT_S", 120.0)
    events = []
    conf = digits.config(spark, large, model="large/lenet.caffemodel")
    with pytest.raises(HearthError) as caught:
        CaffeOnSpark(spark, events.append).train(DataSource(spark).getSource(conf, True))
    text = str(caught.value)
    assert "killed by YARN for exceeding physical memory limits" in text
    assert "spark.executor.memoryOverhead" in text
    assert caught.value.code == "resource_exhausted"
    warnings = [event["text"] for event in events if event.get("level") == "W"]
    assert any("only 640 MB are left" in warning for warning in warnings), warnings
    assert not [event for event in events if event["event"] == "restart"]
