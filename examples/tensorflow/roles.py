"""A chief and two workers train one model together; an evaluator watches its checkpoints.

python examples/tensorflow/roles.py --model_dir /tmp/digits_checkpoints
"""

from __future__ import annotations

import argparse
from pathlib import Path

import digits_model
from pyspark import cloudpickle

from hearth.spark import session as spark_session
from tensorflowonspark import TFCluster

cloudpickle.register_pickle_by_value(digits_model)

NODES = 4


def make_model(seed=1):
    """The digits' network for tf_keras, whose fit() knows MultiWorkerMirroredStrategy."""
    import tf_keras

    tf_keras.utils.set_random_seed(seed)  # some initial weights train worse
    model = tf_keras.Sequential(
        [
            tf_keras.layers.Dense(64, activation="relu", input_shape=(64,)),
            tf_keras.layers.Dense(10),
        ]
    )
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf_keras.optimizers.Adam(1e-2), loss, metrics=["accuracy"])
    return model


def train(args, ctx):
    """Each trainer reads its share of each global batch; the chief keeps the checkpoints."""
    import json
    import os
    import tempfile

    import tensorflow as tf
    import tf_keras

    config = json.loads(os.environ["TF_CONFIG"])
    del config["cluster"]["evaluator"]  # the evaluator is not part of the strategy's cluster
    os.environ["TF_CONFIG"] = json.dumps(config)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other call of TensorFlow
    pixels, _, labels, _ = digits_model.load()
    data = tf.data.Dataset.from_tensor_slices((pixels, labels)).shuffle(2000, seed=1)
    with strategy.scope():
        model = make_model(1 if ctx.job_name == "chief" else 2)  # the chief's weights are used
    checkpoint = tf.train.Checkpoint(model=model)
    # All of them save, as the strategy requires; only the chief's files are kept.
    folder = args.model_dir if ctx.job_name == "chief" else tempfile.mkdtemp()

    def keep(epoch, _):
        checkpoint.write(f"{folder}/epoch-{epoch:03d}")

    model.fit(
        data.batch(args.batch_size, drop_remainder=True).repeat(),
        epochs=args.epochs,
        steps_per_epoch=len(labels) // args.batch_size,
        callbacks=[tf_keras.callbacks.LambdaCallback(on_epoch_end=keep)],
        verbose=0,
    )


def evaluate(args):
    """Evaluates each epoch's checkpoint on the held-out digits: a line each in accuracy.txt."""
    import time

    import tensorflow as tf

    _, pixels, _, labels = digits_model.load()
    model = make_model()
    checkpoint = tf.train.Checkpoint(model=model)
    for epoch in range(args.epochs):
        prefix = f"{args.model_dir}/epoch-{epoch:03d}"
        while not Path(f"{prefix}.index").exists():  # the index file is written last
            time.sleep(0.1)
        checkpoint.read(prefix).expect_partial()
        _, accuracy = model.evaluate(pixels, labels, verbose=0)
        with open(f"{args.model_dir}/accuracy.txt", "a", encoding="utf-8") as file:
            file.write(f"{epoch} {accuracy}\n")


def main_fun(args, ctx):
    """Runs in every node, whatever its role."""
    if ctx.job_name == "evaluator":
        evaluate(args)
    else:
        train(args, ctx)


def run(spark, args) -> float:
    """Runs the cluster; returns the last accuracy that its evaluator computed."""
    Path(args.model_dir).mkdir(parents=True)
    cluster = TFCluster.run(spark, main_fun, args, NODES, 0, master_node="chief", eval_node=True)
    cluster.shutdown(grace_secs=60)
    return float(Path(args.model_dir, "accuracy.txt").read_text().split()[-1])


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", required=True, help="new folder for the checkpoints")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch_size", type=int, default=48, help="of all trainers together")
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("digits-roles", executors=NODES)
    print(f"accuracy: {run(session, parse()):.3f}")
