"""InputMode.TENSORFLOW: each node reads TFRecord files itself.

python examples/tensorflow/files.py --data /tmp/digits_records --export /tmp/digits_model
"""

from __future__ import annotations

import argparse

import digits_model
from pyspark import cloudpickle

from hearth.spark import session as spark_session
from tensorflowonspark import TFCluster, dfutil

cloudpickle.register_pickle_by_value(digits_model)


def main_fun(args, ctx):
    """Runs in the node's process, as long as its Spark task."""
    import tensorflow as tf

    from tensorflowonspark import compat

    features = {
        "image": tf.io.FixedLenFeature([64], tf.float32),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }

    def parse_batch(records):
        row = tf.io.parse_example(records, features)
        return row["image"], row["label"]

    pattern = ctx.absolute_path(args.data).removeprefix("file://") + "/part-*"
    data = tf.data.TFRecordDataset(tf.data.Dataset.list_files(pattern))
    data = data.shuffle(2000).batch(args.batch_size).map(parse_batch)
    model = digits_model.make_model()
    model.fit(data, epochs=args.epochs, verbose=0)
    compat.export_saved_model(model, args.export, ctx.job_name == "chief")


def run(spark, args) -> float:
    """Writes the records and trains; returns the accuracy on the held-out digits."""
    x_train, x_test, y_train, y_test = digits_model.load()
    dfutil.saveAsTFRecords(digits_model.frame(spark, x_train, y_train).repartition(2), args.data)
    TFCluster.run(spark, main_fun, args, 1, 0, master_node="chief").shutdown()
    return digits_model.accuracy(args.export, x_test, y_test)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder for the TFRecord files")
    parser.add_argument("--export", required=True, help="folder for the SavedModel")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch_size", type=int, default=32)
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("digits-files", executors=1)
    print(f"accuracy: {run(session, parse()):.3f}")
