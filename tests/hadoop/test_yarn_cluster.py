"""A cluster's nodes on YARN: fed with rows from HDFS, each of which arrives once."""

from __future__ import annotations

import json
import os
import sys

from pyspark import cloudpickle

from hearth import cluster

ROWS = 4000


def count_rows(args, ctx):
    """Takes rows until there are no more, and leaves their number and sum."""
    feed = ctx.get_data_feed()
    rows = total = 0
    while not feed.should_stop():
        batch = feed.next_batch(100)
        rows += len(batch)
        total += sum(row[0] for row in batch)
    with open(os.path.join(args["folder"], f"node{ctx.index}"), "w") as file:
        json.dump({"rows": rows, "sum": total, "container": os.environ["CONTAINER_ID"]}, file)


def test_every_row_is_fed_once(hadoop, spark, tmp_path):
    # The executors cannot import test modules: functions travel by value.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    place = f"{hadoop.uri}/user/{hadoop.user}/numbers"
    spark.range(ROWS).repartition(4).write.parquet(place)
    tmp_path.chmod(0o777)
    with cluster.run(spark, count_rows, args={"folder": str(tmp_path)}, nodes=2) as nodes:
        nodes.train(spark.read.parquet(place).rdd.map(tuple), epochs=2)
    found = [json.loads(file.read_text()) for file in tmp_path.glob("node*")]
    assert sum(node["rows"] for node in found) == 2 * ROWS
    assert sum(node["sum"] for node in found) == ROWS * (ROWS - 1)
    assert len({node["container"] for node in found}) == 2
