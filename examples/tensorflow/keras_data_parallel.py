"""One Keras 3 model, trained by model.fit on two executors, fed by a DataFrame's rows.

python examples/tensorflow/keras_data_parallel.py --model /tmp/digits.keras
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hearth.spark import session as spark_session
from hearth.tensorflowonspark import TFCluster


def main_fun(args, ctx):
    """Runs in the node's process; Spark sends each row `epochs` times."""
    import keras
    import numpy as np

    import hearth.tensorflow as hvt

    hvt.init()
    keras.utils.set_random_seed(1)  # all nodes start from the same weights
    model = keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(hvt.DistributedOptimizer(keras.optimizers.Adam(5e-3)), loss)
    feed = ctx.get_data_feed()

    def minibatches():
        while not feed.should_stop():
            rows = feed.next_batch(args.batch_size)
            if rows:
                pixels, labels = zip(*rows, strict=True)
                yield np.array(pixels, np.float32), np.array(labels)

    def weighted():
        for (pixels, labels), weight in hvt.in_step(minibatches()):
            yield pixels, labels, np.full(len(labels), weight, np.float32)

    model.fit(weighted(), verbose=0)
    if hvt.rank() == 0:
        model.save(args.model)


def load() -> list[np.ndarray]:
    """Returns x_train, x_test, y_train, y_test: x float32 [n, 64] in [0, 1], y int64 [n]."""
    digits = load_digits()
    return train_test_split((digits.data / 16).astype(np.float32), digits.target, random_state=0)


def run(sc, args) -> float:
    """Trains on the executors; returns the accuracy on the held-out digits."""
    x_train, x_test, y_train, y_test = load()
    rows = list(zip(x_train.tolist(), y_train.tolist(), strict=True))
    mode = TFCluster.InputMode.SPARK
    cluster = TFCluster.run(sc, main_fun, args, args.workers, num_ps=0, input_mode=mode)
    cluster.train(sc.parallelize(rows, 5), num_epochs=args.epochs)
    cluster.shutdown()

    import keras

    found = keras.models.load_model(args.model).predict(x_test, verbose=0).argmax(axis=1)
    return float((found == y_test).mean())


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="file for the model, ending in .keras")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch_size", type=int, default=32)
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("digits-keras", executors=2)
    print(f"accuracy: {run(session.sparkContext, parse()):.3f}")
