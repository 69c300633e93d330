#!/usr/bin/env python3
"""hearth.torch's feed of DataFrame rows as tensors against a mapInArrow that only reads them.

`bench/torch_feed.py --json FILE`. Both read the same cached rows in turn, in one session with one
executor and two partitions; the shapes are tf_feed.py's. A row NAME/cpu is the processor time of
all processes. `--fewer 50` is a trial on few rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark import cloudpickle

import marked_processes
import report
import tf_rows
import tf_shapes
from hearth.spark import session as spark_session
from hearth.torch import TorchCluster
from tf_upstream import add_pair

# Minimum time for which each contender is fed in each round.
LEAST_S = 4.0


def take_tensors(args: dict[str, int], ctx: Any) -> None:
    """A node that reads minibatches as tensors; images, which differ in size, as lists of bytes."""
    batches = ctx.get_data_feed().as_iterable_dataset(args["batch_size"], ("x",))
    for (x,) in batches:
        x[0]


def bench(table: report.Report, session: Any, shape_name: str, rounds: int, fewer: int) -> None:
    """The two rows of one shape."""
    shape = tf_shapes.SHAPES[shape_name]
    name = f"dataframe/{shape_name}"
    if not table.wants(name):
        return
    count = shape.rows // fewer
    frame = shape.frame(session, count)
    look = frame.mapInArrow(tf_rows.look, "id bigint").count
    args = {"batch_size": shape.batch_size}
    with TorchCluster.run(session, take_tensors, args) as cluster:
        train = partial(cluster.train, frame, epochs=1)
        ours, peer = report.alternate(
            rounds,
            lambda: tf_rows.measured(train, count, LEAST_S / fewer),
            lambda: tf_rows.measured(look, count, LEAST_S / fewer),
        )
    frame.unpersist()
    add_pair(table, name, ours, peer, "mapInArrow that only looks")


def main() -> None:
    parser = report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--fewer", type=int, default=1, help="divide numbers of rows by this")
    flags = parser.parse_args()
    marked_processes.own_mark()
    for module in (tf_rows, tf_shapes):
        cloudpickle.register_pickle_by_value(module)
    # The JVM of a long-lived cluster: Spark's own options.
    usual = "-XX:TieredStopAtLevel=4 -XX:+UseG1GC"
    options = {f"spark.{side}.extraJavaOptions": usual for side in ("driver", "executor")}
    session = spark_session.start("bench-torch-feed", executors=1, conf=options)
    table = report.Report(flags.only)
    for shape in tf_shapes.SHAPES:
        bench(table, session, shape, flags.rounds, flags.fewer)
    session.stop()
    table.save(flags.json)


if __name__ == "__main__":
    main()
