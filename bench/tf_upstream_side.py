"""One side of the upstream rows: a cluster of one node that is fed when the bench requests it.

The same program runs with Hearth's package `tensorflowonspark` and with the real one. Its argument
is JSON: the descriptor of the socket to the bench, the kind of rows, their shape and number, and
Spark's settings. It sends "ready" once the node has read all rows for the first time; then it
answers each line after the node has read them once more. It ends when the socket is closed.
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

import tf_shapes
from tensorflowonspark import TFCluster


def take_rows(args: dict[str, int], ctx: Any) -> None:
    """A node that only reads rows."""
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        feed.next_batch(args["batch_size"])


def take_arrays(args: dict[str, int], ctx: Any) -> None:
    """A node that reads minibatches as arrays, which the real package does not offer."""
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        batch = feed.next_numpy(args["batch_size"])
        if batch is not None:
            batch["x"][0]


def start_session(settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName("bench-upstream")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main() -> None:
    job = json.loads(sys.argv[1])
    cloudpickle.register_pickle_by_value(tf_shapes)
    spark = start_session(job["settings"])
    shape = tf_shapes.SHAPES[job["shape"]]
    data = shape.frame(spark, job["rows"])
    if job["kind"] == "rdd":
        frame, data = data, shape.rdd(data)
        frame.unpersist()
    node = take_rows if job["kind"] == "rdd" else take_arrays
    mode = TFCluster.InputMode.SPARK
    context = spark.sparkContext
    args = {"batch_size": shape.batch_size}  # upstream looks for num_gpus in it
    cluster = TFCluster.run(context, node, args, 1, 0, input_mode=mode)
    with socket.socket(fileno=job["socket"]) as bench, bench.makefile("rw") as lines:
        cluster.train(data, 1)
        print("ready", file=lines, flush=True)
        for _ in lines:
            cluster.train(data, 1)
            print("fed", file=lines, flush=True)
    cluster.shutdown()
    spark.stop()


if __name__ == "__main__":
    main()
