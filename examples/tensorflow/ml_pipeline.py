"""Spark ML: TFEstimator trains, TFModel predicts, inside one Pipeline.

python examples/tensorflow/ml_pipeline.py --export /tmp/digits_model
"""

from __future__ import annotations

import argparse

import digits_model
from pyspark import cloudpickle
from pyspark.ml import Pipeline

from hearth.spark import session as spark_session
from tensorflowonspark import pipeline

cloudpickle.register_pickle_by_value(digits_model)


def train_fn(args, ctx):
    """The main function of the estimator's cluster: rows are (image, label) tuples."""
    import numpy as np

    from tensorflowonspark import compat

    model = digits_model.make_model()
    feed = ctx.get_data_feed(input_mapping=args.input_mapping)
    while not feed.should_stop():
        batch = feed.next_batch(args.batch_size)
        if batch["image"]:
            model.train_on_batch(np.array(batch["image"]), np.array(batch["label"]))
    compat.export_saved_model(model, args.export_dir, ctx.job_name == "chief")


def run(spark, args) -> float:
    """Fits and transforms; returns the accuracy on the held-out digits."""
    x_train, x_test, y_train, y_test = digits_model.load()
    estimator = (
        pipeline.TFEstimator(train_fn, {})
        .setInputMapping({"image": "image", "label": "label"})
        .setExportDir(args.export)
        .setEpochs(args.epochs)
        .setBatchSize(32)
    )
    rows = digits_model.frame(spark, x_train, y_train).repartition(2)
    fitted = Pipeline(stages=[estimator]).fit(rows)
    model = fitted.stages[0].setInputMapping({"image": "image"}).setKeepColumns(True)
    model.setOutputMapping({"output_0": "logits"})
    found = fitted.transform(digits_model.frame(spark, x_test, y_test)).collect()
    right = [max(range(10), key=lambda i: row.logits[i]) == row.label for row in found]
    return sum(right) / len(right)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--export", required=True, help="folder for the SavedModel")
    parser.add_argument("--epochs", type=int, default=20)
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("digits-pipeline", executors=1)
    print(f"accuracy: {run(session, parse()):.3f}")
