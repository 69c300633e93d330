"""Structured Streaming: each micro-batch of a stream of files is fed to a node that keeps training.

python examples/tensorflow/streaming.py --data /tmp/digits_stream --export /tmp/digits_model4
"""

from __future__ import annotations

import argparse

import digits_model
from pyspark import cloudpickle

from hearth.spark import session as spark_session
from tensorflowonspark import TFCluster

cloudpickle.register_pickle_by_value(digits_model)


def main_fun(args, ctx):
    """Trains on incoming rows until the driver shuts the cluster down; then exports."""
    from tensorflowonspark import compat

    model = digits_model.make_model()
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        batch = feed.next_numpy(args.batch_size)
        if batch is not None:
            model.train_on_batch(batch["image"], batch["label"])
    compat.export_saved_model(model, args.export, ctx.job_name == "chief")


def run(spark, args) -> float:
    """Streams the training digits through a cluster; returns the held-out digits' accuracy."""
    x_train, x_test, y_train, y_test = digits_model.load()
    rows = digits_model.frame(spark, x_train, y_train)
    rows.repartition(args.files).write.parquet(args.data)
    with TFCluster.run(
        spark, main_fun, args, 1, 0, input_mode=TFCluster.InputMode.SPARK, master_node="chief"
    ) as cluster:
        stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1)
        query = (
            stream.parquet(args.data)
            .writeStream.foreachBatch(lambda part, _: cluster.train(part, num_epochs=args.epochs))
            .trigger(availableNow=True)  # without this trigger the stream would never end
            .start()
        )
        query.awaitTermination()
    return digits_model.accuracy(args.export, x_test, y_test)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder for the stream's files")
    parser.add_argument("--export", required=True, help="folder for the SavedModel")
    parser.add_argument("--files", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=15, help="of each micro-batch")
    parser.add_argument("--batch_size", type=int, default=32)
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("digits-streaming", executors=1)
    print(f"accuracy: {run(session, parse()):.3f}")
