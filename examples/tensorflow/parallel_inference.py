"""TFParallel: every executor loads the model and predicts its share of the files.

python examples/tensorflow/parallel_inference.py --model /tmp/digits_model --output /tmp/out
"""

from __future__ import annotations

import argparse
from pathlib import Path

import digits_model
from pyspark import cloudpickle

from hearth.spark import session as spark_session
from tensorflowonspark import TFParallel

cloudpickle.register_pickle_by_value(digits_model)


def inference(args, ctx):
    """Predicts every num_workers-th row and writes "label prediction" lines."""
    import tensorflow as tf

    _, pixels, _, labels = digits_model.load()
    mine = slice(ctx.worker_num, None, ctx.num_workers)
    serve = tf.saved_model.load(args.model).signatures["serving_default"]
    (name,) = serve.structured_input_signature[1]
    logits = next(iter(serve(**{name: tf.constant(pixels[mine])}).values())).numpy()
    lines = [f"{y} {p}\n" for y, p in zip(labels[mine], logits.argmax(axis=1), strict=True)]
    Path(args.output, f"part-{ctx.worker_num:05d}").write_text("".join(lines))


def run(spark, args) -> float:
    """Predicts on all executors; returns the share of correct lines."""
    Path(args.output).mkdir(parents=True, exist_ok=True)
    TFParallel.run(spark, inference, args, args.cluster_size)
    lines = [line for part in Path(args.output).glob("part-*") for line in part.open()]
    return sum(len(set(line.split())) == 1 for line in lines) / len(lines)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="folder of the SavedModel")
    parser.add_argument("--output", required=True, help="folder for the predictions")
    parser.add_argument("--cluster_size", type=int, default=2)
    return parser.parse_args(argv)


if __name__ == "__main__":
    arguments = parse()
    session = spark_session.start("digits-inference", executors=arguments.cluster_size)
    print(f"accuracy: {run(session, arguments):.3f}")
