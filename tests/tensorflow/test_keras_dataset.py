"""Keras' fit() on ctx.dataset(): each row once per epoch; the position counts trained steps."""

from __future__ import annotations

import contextlib

from hearth import cluster


def fit(args, ctx):
    """Notes the ids that train_step() received in each epoch, and the state after some steps."""
    notes, stop_after, state = args
    import keras
    import numpy as np

    taken = [[]]

    class Noting(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            taken[-1].append(np.asarray(data[0])[:, 0].astype(int).tolist())
            return super().train_step(data)

    class Epochs(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            taken.append([])

        def on_train_batch_end(self, batch, logs=None):
            if stop_after and sum(map(len, taken)) == stop_after:
                raise InterruptedError

    model = Noting()
    model.compile("sgd", "mse", run_eagerly=True)
    loader = ctx.dataset("train", 8, seed=2)
    dataset = loader.as_keras_dataset("x", "y")
    if state is not None:
        dataset.load_state_dict(state)
    callbacks = [dataset.callback(), Epochs()]
    with contextlib.suppress(InterruptedError):
        model.fit(dataset, epochs=3, shuffle=False, verbose=0, callbacks=callbacks)
    notes.write(ctx, {"taken": [e for e in taken if e], "state": dataset.state_dict()})


def run(spark, folder, stop_after=0, state=None):
    from node_notes import Notes

    folder.mkdir()
    notes = Notes(str(folder))
    frame = spark.range(0, 100, 1, 2).selectExpr("array(float(id)) x", "float(id) y")
    args = (notes, stop_after, state)
    cluster.run(spark, fit, args, nodes=2, datasets={"train": frame}).shutdown()
    return [notes.read()[f"worker{rank}"] for rank in (0, 1)]


def test_fit_takes_every_row_once_per_epoch_and_resumes_behind_the_last_step(spark, tmp_path):
    whole = run(spark, tmp_path / "whole")
    assert [len(node["taken"]) for node in whole] == [3, 3]
    for epoch in range(3):
        assert {i for node in whole for step in node["taken"][epoch] for i in step} == set(
            range(100)
        )
    first = run(spark, tmp_path / "first", stop_after=10)
    second = run(spark, tmp_path / "second", state=first[0]["state"])
    for rank in (0, 1):
        steps = [step for epoch in whole[rank]["taken"] for step in epoch]
        taken = [step for epoch in first[rank]["taken"] for step in epoch]
        assert taken == steps[:10]
        after = [step for epoch in second[rank]["taken"] for step in epoch]
        assert after[: len(steps) - 10] == steps[10:]


def test_a_fit_that_shuffles_batches_is_refused(spark, tmp_path):
    import pytest

    def shuffled(_, ctx):
        import keras

        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(ctx.dataset("train", 1).as_keras_dataset("x", "y"), verbose=0)

    frame = spark.range(0, 100, 1, 2).selectExpr("array(float(id)) x", "float(id) y")
    with pytest.raises(cluster.NodeError, match=r"use fit\(shuffle=False\)"):
        cluster.run(spark, shuffled, nodes=1, datasets={"train": frame}).shutdown()


def test_a_pass_over_a_tf_dataset_is_an_epoch(spark, tmp_path):
    from node_notes import Notes

    def main(notes, ctx):
        dataset = ctx.dataset("train", 8).as_tf_dataset()
        epochs = [[int(i) for batch in dataset for i in batch["id"].numpy()] for _ in range(2)]
        notes.write(ctx, epochs)

    notes = Notes(str(tmp_path))
    cluster.run(spark, main, notes, nodes=1, datasets={"train": spark.range(50)}).shutdown()
    first, second = notes.read()["worker0"]
    assert sorted(first) == sorted(second) == list(range(50)) and first != second
