"""A Keras checkpoint commits the feed rows of the steps that the model has completed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"
    ),
]

FIT = """
import json, sys
import keras
import numpy as np
import hearth.tensorflow as hvt

class Feed:
    taken = 0
    committed = [0]

    def commit(self, rows):
        self.committed.append(rows)

def minibatches():
    for _ in range(5):
        feed.taken += 3
        yield np.ones((3, 2), np.float32), np.ones((3, 1), np.float32)

def rows():
    for (x, y), weight in steps:
        yield x, y, np.full(len(y), weight, np.float32)

hvt.init()
feed, saved = Feed(), []
steps = hvt.in_step(minibatches(), feed=feed)
model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", steps_per_execution=int(sys.argv[1]))
keeps = hvt.CheckpointCallback(steps, lambda model: saved.append(len(feed.committed)), every=2)
model.fit(rows(), callbacks=[keeps], verbose=0)
print(json.dumps([feed.committed, saved]))
"""


@pytest.mark.parametrize(("steps", "rows"), [(1, [0, 6, 12, 15]), (2, [0, 6, 12, 15])])
def test_rows_are_safe_by_steps_however_many_keras_makes_at_once(steps, rows):
    command = [sys.executable, "-c", FIT, str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    committed, saved = json.loads(done.stdout.splitlines()[-1])
    assert committed == rows
    assert saved == [1, 2, 3]  # each is saved before its rows are committed
