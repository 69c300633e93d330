"""InputMode.SPARK: a DataFrame feeds Keras' fit() through tf.data, and the chief exports.

python examples/tensorflow/feed.py --export /tmp/digits_model
"""

from __future__ import annotations

import argparse

import digits_model
from pyspark import cloudpickle

from hearth.spark import session as spark_session
from tensorflowonspark import TFCluster

# Executors may not have this folder in their path: its functions are pickled by value.
cloudpickle.register_pickle_by_value(digits_model)


def main_fun(args, ctx):
    """Runs in the node's process; Spark sends each row `epochs` times."""
    from tensorflowonspark import compat

    model = digits_model.make_model()
    batches = ctx.get_data_feed().as_dataset(args.batch_size)
    model.fit(batches.map(lambda row: (row["image"], row["label"])), verbose=0)
    compat.export_saved_model(model, args.export, ctx.job_name == "chief")


def run(spark, args) -> float:
    """Trains on the executors; returns the accuracy on the held-out digits."""
    x_train, x_test, y_train, y_test = digits_model.load()
    rows = digits_model.frame(spark, x_train, y_train).repartition(2)
    with TFCluster.run(
        spark, main_fun, args, 1, 0, input_mode=TFCluster.InputMode.SPARK, master_node="chief"
    ) as cluster:
        cluster.train(rows, num_epochs=args.epochs)
    return digits_model.accuracy(args.export, x_test, y_test)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--export", required=True, help="folder for the SavedModel")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch_size", type=int, default=32)
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("digits-feed", executors=1)
    print(f"accuracy: {run(session, parse()):.3f}")
