"""Layers in Python train on the executors, and their exceptions reach the driver."""

import time

import pytest
from faults import trainers
from waiting import wait_until

from hearth import HearthError
from hearth.caffeonspark import CaffeOnSpark, DataSource

LAYERS = '''
import os
import caffe
import numpy as np


class Relu(caffe.Layer):
    def reshape(self, bottom, top):
        """In place."""

    def forward(self, bottom, top):
        top[0].data[...] = np.maximum(bottom[0].data, 0)

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = top[0].diff * (top[0].data > 0)


class RefusesOnOneRank(Relu):
    """The first rank to reach forward number 20 fails."""

    def setup(self, bottom, top):
        self.forwards = 0

    def forward(self, bottom, top):
        self.forwards += 1
        if self.forwards == 20:
            try:
                os.close(os.open(self.param_str, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                raise ValueError("no more today")
        super().forward(bottom, top)
'''


@pytest.fixture(scope="module")
def train(spark, digits):
    """Trains on two executors; returns the events. A `layer` replaces LeNet's ReLU."""
    module = digits.folder / "layers_of_the_test.py"
    module.write_text(LAYERS)
    spark.sparkContext.addPyFile(str(module))

    def train(layer=None, param="", max_iter=30):
        solver = digits.solver("memory", max_iter=max_iter, random_seed=5)
        net = solver.replace("_solver", "_net")
        with open(net, encoding="utf-8") as file:
            text = file.read()
        if layer is not None:
            assert text.count('type: "ReLU"') == 1
            mine = f'module: "{module.stem}" layer: "{layer}" param_str: "{param}"'
            text = text.replace('type: "ReLU"', f'type: "Python" python_param {{ {mine} }}')
        with open(net, "w", encoding="utf-8") as file:
            file.write(text)
        conf = digits.config(spark, solver, clusterSize="2")
        events = []
        source = DataSource(spark).getSource(conf, True)
        CaffeOnSpark(spark, on_event=events.append).train(source)
        return events

    return train


def weights_of(events):
    return {event["weights_sha256"] for event in events if event.get("event") == "done"}


def test_a_python_layer_trains_the_same_model_as_the_built_in_one(train):
    assert weights_of(train("Relu")) == weights_of(train())


def test_its_exception_names_rank_iteration_and_layer(train, tmp_path):
    mark, before = tmp_path / "raised", trainers()  # predictions' trainers stay for 30 s
    where = r"rank \d on host \S+ failed: iteration 19: layer 'relu1' \(Python\), forward: "
    with pytest.raises(HearthError, match=rf"(?s){where}Traceback .*ValueError: no more today"):
        train("RefusesOnOneRank", mark, max_iter=1000000)
    assert time.time() - mark.stat().st_mtime < 30  # a second or two on an idle machine
    assert wait_until(lambda: set(trainers()) <= set(before), 60)


def test_a_missing_module_is_named(train, digits):
    with pytest.raises(HearthError, match=r"layer 'relu1'.* has no class 'Missing'"):
        train("Missing")
