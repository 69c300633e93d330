"""One Keras model on two nodes that average gradients by the collective, when a node dies."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from hearth.cluster.errors import NodeError
from hearth.cluster.task.node_process import executor_pid
from tensorflowonspark import TFCluster

from conftest import no_node_left  # isort: skip

pytestmark = pytest.mark.tensorflow
SPARK = TFCluster.InputMode.SPARK
ROWS = 320


def counts_rows(arguments, ctx):
    """Runs model.fit() over a feed; every row changes a separate weight. Rank 1 dies at step 6."""
    import keras
    import numpy as np

    import hearth.tensorflow as hvt

    folder = Path(arguments["folder"])
    hvt.init()
    model = keras.Sequential(
        [
            keras.layers.Input((ROWS,)),
            keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros"),
        ]
    )
    model.compile(
        hvt.DistributedOptimizer(keras.optimizers.SGD(1.0)), loss=lambda wanted, found: -found
    )
    kept = folder / "kept.weights.h5"
    if ctx.restart_count and kept.exists():
        model.load_weights(kept)
    began = int((np.array(model.get_weights()[0]) != 0).sum())

    def save(model):
        model.save_weights(folder / "new.weights.h5")
        os.replace(folder / "new.weights.h5", kept)

    class Ends(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            if hvt.rank() == 1 and batch == 6 and not ctx.restart_count:
                (folder / "when").write_text(str(time.time()))
                executor = arguments["whom"] == "executor"
                os.kill(executor_pid() if executor else os.getpid(), signal.SIGKILL)

    feed = ctx.get_data_feed()

    def minibatches():
        while not feed.should_stop():
            if rows := feed.next_batch(5):
                yield np.eye(ROWS, dtype=np.float32)[rows], np.zeros((len(rows), 1), np.float32)

    steps = hvt.in_step(minibatches(), feed=feed)

    def weighted():
        for (x, y), weight in steps:
            yield x, y, np.full(len(y), weight, np.float32)

    keeps = hvt.CheckpointCallback(steps, save, every=2)
    model.fit(weighted(), callbacks=[Ends(), keeps], verbose=0)
    if hvt.rank() == 0:
        ended = np.array(model.get_weights()[0])[:, 0].tolist()
        (folder / "end.json").write_text(json.dumps([ctx.restart_count, began, ended]))


def start(sc, folder, whom, restart):
    arguments = {"folder": str(folder), "whom": whom}
    return TFCluster.run(sc, counts_rows, arguments, 2, 0, input_mode=SPARK, restart=restart)


def test_a_fit_resumes_from_its_checkpoint_and_has_seen_every_row(sc, tmp_path):
    cluster = start(sc, tmp_path, "executor", restart=True)
    cluster.train(sc.parallelize(range(ROWS), 16), num_epochs=1)
    cluster.shutdown()
    restarts, began, ended = json.loads((tmp_path / "end.json").read_text())
    assert restarts == 1
    assert began >= 20  # it did not start from zero
    assert all(weight != 0 for weight in ended)
    assert no_node_left()


def test_a_killed_rank_of_a_fit_is_named_soon(sc, tmp_path):
    cluster = start(sc, tmp_path, "node", restart=False)
    with pytest.raises(NodeError, match=r"worker:1 on host \S+ failed: its process was .*SIGKILL"):
        cluster.train(sc.parallelize(range(ROWS), 16), num_epochs=1)
    # A fraction of a second on an idle machine.
    assert time.time() - float((tmp_path / "when").read_text()) < 30
    with pytest.raises(NodeError, match=r"worker:1 on host .*SIGKILL"):
        cluster.shutdown()
    assert no_node_left()
