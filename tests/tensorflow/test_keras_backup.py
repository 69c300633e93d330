"""Keras' fit() with BackupAndRestore: an interrupted run ends like an uninterrupted one."""

from __future__ import annotations

import os
import signal

import pytest
from node_notes import Notes

from hearth import cluster

pytestmark = pytest.mark.tensorflow
ROWS, EPOCHS = 100, 3


def fit(args, ctx):
    """Notes the model's weights and the number of steps; rank 1 kills itself after some steps."""
    notes, every, dies_after, background = args
    import keras
    import numpy as np

    import hearth.tensorflow as hvt

    hvt.init()
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(8), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
    )
    model.compile(hvt.DistributedOptimizer(keras.optimizers.Adam(0.01)), "mse")
    rows = ctx.dataset("train", 8, seed=2).as_keras_dataset("x", "y")
    steps = []

    class Steps(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            steps.append(batch)
            if len(steps) == dies_after and not ctx.restart_count and hvt.rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)

    backup = hvt.BackupAndRestore(ctx, rows, every=every, background=background)
    model.fit(rows, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[backup, Steps()])
    variables = [*model.weights, *model.optimizer.variables]
    found = b"".join(np.ascontiguousarray(v.numpy()).tobytes() for v in variables).hex()
    notes.write(ctx, {"weights": found, "steps": len(steps), "restarts": ctx.restart_count})


def run(spark, folder, every=0, dies_after=0, background=False):
    (folder / "notes").mkdir(exist_ok=True)
    notes = Notes(str(folder / "notes"))
    frame = spark.range(0, ROWS, 1, 2).selectExpr(
        "array(float(id % 10) / 10, float(id % 7) / 7) x", "float(id % 3) y"
    )
    cluster.run(
        spark,
        fit,
        (notes, every, dies_after, background),
        nodes=2,
        datasets={"train": frame},
        restart=True,
        checkpoint_dir=str(folder / "checkpoints"),
    ).shutdown()
    return [notes.read()[f"worker{rank}"] for rank in (0, 1)]


@pytest.mark.long
def test_a_killed_fit_ends_with_the_bits_of_one_that_was_not(spark, tmp_path):
    folders = {name: tmp_path / name for name in ("whole", "killed")}
    for folder in folders.values():
        folder.mkdir()
    whole = run(spark, folders["whole"], every=4)
    steps = -(-ROWS // 2 // 8) * EPOCHS
    assert [(node["steps"], node["restarts"]) for node in whole] == [(steps, 0)] * 2
    assert whole[0]["weights"] == whole[1]["weights"]
    # Rank 1 dies in the second epoch, three steps after a checkpoint within the epoch.
    killed = run(spark, folders["killed"], every=4, dies_after=11, background=True)
    # The checkpoint of step 8 may have been incomplete when rank 1 died, so that of step 4 counts.
    assert [node["restarts"] for node in killed] == [1, 1]
    assert killed[0]["steps"] == killed[1]["steps"] and killed[0]["steps"] in (
        steps - 8,
        steps - 4,
    )
    assert [node["weights"] for node in killed] == [node["weights"] for node in whole]
    kept = sorted(os.listdir(folders["killed"] / "checkpoints"))
    assert [name.rpartition("-")[2] for name in kept if name.startswith("checkpoint-")] == [
        str(steps - 1),
        str(steps),
    ]
    done = run(spark, folders["killed"])
    assert [node["steps"] for node in done] == [0, 0]
    assert [node["weights"] for node in done] == [node["weights"] for node in whole]
