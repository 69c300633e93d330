"""Clusters on other shapes of Spark: many slots in one executor, local[n], Spark Connect.

Each in a process of its own, which has the Spark session that it needs.
"""

import os
import re
import subprocess
import sys
import textwrap

import pytest

from conftest import MARK, no_node_left  # isort: skip

PROGRAM = """
import time
from pyspark.sql import SparkSession
from hearth import spark_session
from tensorflowonspark import TFCluster
SPARK = TFCluster.InputMode.SPARK

def sums(args, ctx):
    feed = ctx.get_data_feed()
    total = 0
    while not feed.should_stop():
        batch = feed.next_numpy(50)
        if batch is not None:
            total += int((batch["id"] if isinstance(batch, dict) else batch).sum())
    with open(f"{args}/{ctx.job_name}{ctx.task_index}", "w") as file:
        file.write(str(total))

def squares(args, ctx):
    feed = ctx.get_data_feed(train_mode=False)
    while not feed.should_stop():
        batch = feed.next_numpy(50)
        if batch is not None:
            feed.batch_results((batch["id"] ** 2).tolist())

def fails(args, ctx):
    ctx.get_data_feed().next_batch(1)
    raise ValueError("cannot go on")

def total(folder):
    import os
    return sum(int(open(f"{folder}/{name}").read()) for name in os.listdir(folder))

def refused(spark, nodes, seconds):
    start = time.monotonic()
    try:
        TFCluster.run(spark, sums, "", nodes, 0, input_mode=SPARK, reservation_timeout=seconds)
    except Exception as error:
        print("refused:", time.monotonic() - start < seconds, error)
"""


def run_program(text, folder):
    """Runs PROGRAM and `text`, with `folder` as a variable; what it printed."""
    folder.mkdir(exist_ok=True)
    mark = {MARK: os.environ.get(MARK, "alone") + "-placement", "PYSPARK_PYTHON": sys.executable}
    code = f"{PROGRAM}\nfolder = {str(folder)!r}\n{textwrap.dedent(text)}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **mark, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


TRAIN = """
cluster = TFCluster.run(spark, sums, folder, 2, 0, input_mode=SPARK)
print("executors", len({node["executor_pid"] for node in cluster.cluster_info}))
cluster.train(spark.range(0, 1000, 1, 6), num_epochs=2)
cluster.train(spark.sparkContext.parallelize(range(1000), 6), num_epochs=1)
cluster.shutdown()
print("total", total(folder))
with TFCluster.run(spark, squares, None, 2, 0, input_mode=SPARK) as cluster:
    found = cluster.inference(spark.range(0, 1000, 1, 6)).collect()
    print("squares", found == [x * x for x in range(1000)])
"""


def test_local_n_with_fewer_nodes_than_slots(tmp_path):
    said = run_program(
        'spark = spark_session.start("local", master="local[3]")\n'
        + TRAIN
        + "refused(spark, 4, 60)",
        tmp_path / "totals",
    )
    assert "executors 1\n" in said
    assert f"total {3 * sum(range(1000))}\n" in said
    assert "squares True\n" in said
    assert "refused: True timed out waiting for reservations to complete" in said
    assert "the cluster has 3 for 4 nodes" in said
    assert no_node_left()


def test_two_nodes_in_the_slots_of_one_executor(tmp_path):
    said = run_program(
        """
        import os
        os.cpu_count = lambda: 2
        os.environ["MASTER"] = "local-cluster[1,2,1024]"
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        conf = spark_session._own_cluster_conf(1) | {"spark.task.cpus": "1"}
        builder = SparkSession.builder.master(os.environ["MASTER"])
        for key, value in conf.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        """
        + textwrap.indent(TRAIN, " " * 8)
        + """
        spark.stop()
        """,
        tmp_path / "totals",
    )
    assert "executors 1\n" in said
    assert f"total {3 * sum(range(1000))}\n" in said
    assert "squares True\n" in said


def test_spark_connect_takes_dataframes(tmp_path):
    said = run_program(
        """
        spark = SparkSession.builder.remote("local[2]").getOrCreate()
        assert not hasattr(spark, "_jsc")
        cluster = TFCluster.run(spark, sums, folder, 2, 0, input_mode=SPARK)
        cluster.train(spark.range(0, 1000, 1, 6), num_epochs=2)
        cluster.shutdown()
        print("total", total(folder))
        with TFCluster.run(spark, squares, None, 1, 0, input_mode=SPARK) as cluster:
            rows = cluster.inference(spark.range(0, 1000, 1, 6), schema="square bigint")
            print("squares", [row.square for row in rows.collect()] == [x * x for x in range(1000)])
            try:
                cluster.inference(spark.range(10))
            except ValueError as error:
                print("refused:", error)
        cluster = TFCluster.run(spark, fails, None, 1, 0, input_mode=SPARK)
        try:
            cluster.train(spark.range(0, 1000, 1, 6), num_epochs=1)
        except Exception as error:
            print("failed:", type(error).__name__, error)
        cluster.end()
        refused(spark, 3, 60)
        spark.stop()
        """,
        tmp_path / "totals",
    )
    assert f"total {2 * sum(range(1000))}\n" in said
    assert "squares True\n" in said
    assert "give inference() the schema of its results" in said
    assert "failed: NodeError worker:0 on host" in said
    assert "ValueError: cannot go on" in said
    assert "refused: True timed out waiting for reservations to complete" in said
    assert "2 for 3 nodes" in said
    assert no_node_left()


class ClusterOf:
    """What likely_reason() asks of Spark."""

    def __init__(self, slots, **conf):
        self._slots, self._conf = slots, conf

    def slots(self):
        return self._slots

    def conf(self, key, default):
        return self._conf.get(key.replace(".", "_"), default)


@pytest.mark.parametrize(
    ("spark", "words"),
    [
        (ClusterOf(2), "the cluster has 2 for 3 nodes: give Spark more executors or cores"),
        (ClusterOf(0, spark_executor_memory="80g"), r"executors of this memory \(80g\) fit"),
        (
            ClusterOf(1, spark_dynamicAllocation_enabled="TRUE"),
            "spark.dynamicAllocation.enabled is true: set it to false, or .*minExecutors to 3",
        ),
        (ClusterOf(3), "3 task slots: perhaps other jobs hold them, or .* driver at head:77"),
        (ClusterOf(None), "Spark does not tell how many task slots"),
    ],
)
def test_the_likely_reason_of_missing_nodes(spark, words):
    from hearth.tensorflowonspark.missing_nodes import likely_reason

    assert re.search(words, likely_reason(spark, 3, ("head", 77)))
