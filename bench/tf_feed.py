"""The feed of a TensorFlow cluster against peers in the same run. Its rows by name:

KIND/SHAPE           rows that Spark sends (tf_rows.py). KIND `dataframe`: read with next_numpy(),
                     against a mapInArrow that only reads the batches. `rdd`: read with
                     next_batch(), against a foreachPartition that only iterates.
rdd/SHAPE/arrays     the same RDD, read with next_numpy().
KIND/SHAPE/upstream  the same kinds against the real TensorFlowOnSpark's RDD (tf_upstream.py).
files/FORMAT/SHAPE   files that the node itself reads, against the format's library (tf_files.py).
run(), shutdown(), a partition, resident memory: against limits (tf_cluster_costs.py).

Each row of the first three kinds has a second one, NAME/cpu: all processes' processor time per row.
One executor, two partitions. SHAPEs are in tf_shapes.py. `--fewer 50` is a trial on few rows.
"""

from __future__ import annotations

import functools
from typing import Any

from pyspark import cloudpickle

import marked_processes
import report
import tf_cluster_costs
import tf_files
import tf_rows
import tf_shapes
import tf_upstream
import tf_upstream_side
from hearth.spark import session as spark_session


@functools.cache
def session() -> Any:
    """The session that all but the upstream rows share; not started unless a row uses it."""
    marked_processes.own_mark()
    for module in (tf_cluster_costs, tf_rows, tf_shapes, tf_upstream_side):
        cloudpickle.register_pickle_by_value(module)
    # The JVM of a long-lived cluster: Spark's own options.
    usual = "-XX:TieredStopAtLevel=4 -XX:+UseG1GC"  # as in long runs
    options = {f"spark.{side}.extraJavaOptions": usual for side in ("driver", "executor")}
    return spark_session.start("bench-tf-feed", executors=1, conf=options)


def main() -> None:
    parser = report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--fewer", type=int, default=1, help="divide numbers of rows by this")
    flags = parser.parse_args()
    table = report.Report(flags.only)
    tf_files.bench(table, flags.rounds)
    for shape in tf_shapes.SHAPES:
        tf_upstream.bench(table, shape, min(flags.rounds, 3), flags.fewer)
    tf_cluster_costs.bench_times(session, table, flags.rounds)
    tf_cluster_costs.bench_memory(session, table)
    rows = tf_rows.Bench(session, table, flags.rounds, flags.fewer)
    for shape in tf_shapes.SHAPES:
        rows.shape(shape)
    table.save(flags.json)


if __name__ == "__main__":
    main()
