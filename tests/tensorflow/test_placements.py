"""Clusters on other layouts of Spark: many slots in one executor, local[n], Spark Connect.

Each test runs in a separate process with the Spark session that it needs.
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
from hearth.spark import session as spark_session
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


def run_program(text, folder, first_on_path=""):
    """Runs PROGRAM and then `text`, with a variable `folder`; returns what they printed."""
    folder.mkdir(exist_ok=True)
    path = os.pathsep.join(filter(None, [first_on_path, *sys.path]))
    mark = {MARK: os.environ[MARK] + "-placement", "PYSPARK_PYTHON": sys.executable}
    code = f"{PROGRAM}\nfolder = {str(folder)!r}\n{textwrap.dedent(text)}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **mark, "PYTHONPATH": path},
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
    assert "refused: True not all nodes can start: rank" in said
    assert "the master local[3] has 3 for 4 nodes: use local[4]" in said
    assert no_node_left()


def test_two_nodes_in_the_slots_of_one_executor(tmp_path):
    said = run_program(
        """
        import os
        os.cpu_count = lambda: 2
        os.environ["MASTER"] = "local-cluster[1,2,1024]"
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        # Executors may leave their logs there, which `hearth pack` would find in pyspark's own.
        os.environ["SPARK_HOME"] = str(spark_session.writable_home())
        conf = spark_session._local_cluster_conf(1) | {"spark.task.cpus": "1"}
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
        from pyspark.sql.connect.client import DefaultChannelBuilder

        # Of any port: others of this machine may have Connect's own. So do the tests of pyspark.
        def port():
            jvm = SparkSession._instantiatedSession._jvm
            service = "org.apache.spark.sql.connect.service.SparkConnectService$"
            return getattr(getattr(jvm, service), "MODULE$").localPort()

        DefaultChannelBuilder.default_port = staticmethod(port)
        builder = SparkSession.builder.remote("local[2]")
        spark = builder.config("spark.connect.grpc.binding.port", "0").getOrCreate()
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
    assert "pass the schema of the results to inference" in said
    assert "failed: NodeError worker:0 on host" in said
    assert "ValueError: cannot go on" in said
    assert "refused: True not all nodes can start: rank" in said
    assert "2 for 3 nodes" in said
    assert no_node_left()


# Makes Python in a local-cluster's second executor report another host name.
TWO_HOSTS = """
import os, socket
here = socket.gethostname()
socket.gethostname = lambda: "second" if os.getcwd().endswith("/1") else here
"""

REMOTE_ROWS = """
import collections, fractions, threading
import numpy as np

def relays():
    return sum(thread.name == "hearth-relay" for thread in threading.enumerate())

def counts(args, ctx):
    # Counts of each row, and whether some came from the other host.
    feed = ctx.get_data_feed()
    seen, remote = collections.Counter(), 0
    while not feed.should_stop():
        for row in feed.next_batch(70):
            seen[row[0] if isinstance(row, tuple) else row] += 1
        remote = max(remote, relays())
    with open(f"{args}/counts", "w") as file:
        file.write(f"{len(seen)} rows {set(seen.values())} times, remote {remote}")

def gives(args, ctx):
    feed = ctx.get_data_feed(train_mode=False)
    while not feed.should_stop():
        batch = feed.next_numpy(50)
        if batch is not None:
            numbers = batch["id"] if isinstance(batch, dict) else batch
            results = [np.full(1000, number) for number in numbers] if args else list(numbers**2)
            feed.batch_results(results)

def stops(args, ctx):
    feed = ctx.get_data_feed()
    feed.next_batch(10)
    feed.terminate()

def sleeps(args, ctx):
    feed = ctx.get_data_feed()
    feed.next_batch(1)
    time.sleep(600)

def text_of(job, *arguments, **named):
    start = time.monotonic()
    try:
        job(*arguments, **named)
    except Exception as error:
        return f"{time.monotonic() - start < 60} {type(error).__name__} {error}"

sc = spark.sparkContext
numbers = list(range(1000))
"""


@pytest.fixture
def two_hosts(tmp_path):
    """A function that runs a program after REMOTE_ROWS; two executors appear to be on two hosts."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(TWO_HOSTS)

    def run(text):
        start = 'spark = spark_session.start("hosts", executors=2)\n'
        code = start + REMOTE_ROWS + textwrap.dedent(text)
        return run_program(code, tmp_path / "folder", str(site))

    return run


def test_rows_and_results_travel_between_hosts(two_hosts, tmp_path):
    said = two_hosts(
        """
        cluster = TFCluster.run(spark, counts, folder, 1, 0, input_mode=SPARK)
        print("nodes", len(cluster.cluster_info))
        cluster.train(spark.range(0, 1000, 1, 8), num_epochs=2)
        cluster.train(sc.parallelize(numbers, 8), num_epochs=1)
        cluster.train(sc.parallelize(numbers, 8).map(np.int64), num_epochs=1)
        cluster.shutdown()
        with TFCluster.run(spark, gives, False, 1, 0, input_mode=SPARK) as cluster:
            frame = cluster.inference(spark.range(0, 1000, 1, 8)).collect()
            rdd = cluster.inference(sc.parallelize(numbers, 8)).collect()
            print("squares", frame == rdd == [x * x for x in numbers])
        with TFCluster.run(spark, gives, True, 1, 0, input_mode=SPARK) as cluster:
            # 400 MB of results, which are not read at once.
            rows = cluster.inference(sc.parallelize(numbers * 50, 8))
            print("sum", rows.map(lambda row: int(row.sum())).sum() == 50 * 1000 * sum(numbers))
        """
    )
    assert "nodes 1\n" in said
    assert "squares True\n" in said
    assert "sum True\n" in said
    assert re.fullmatch(
        r"1000 rows \{4\} times, remote [12]", (tmp_path / "folder" / "counts").read_text()
    )


def test_failures_of_a_node_reach_another_host(two_hosts):
    said = two_hosts(
        """
        frame, rdd = spark.range(0, 100000, 1, 8), sc.parallelize(range(100000), 8)
        cluster = TFCluster.run(spark, fails, None, 1, 0, input_mode=SPARK)
        print("failed:", text_of(cluster.train, frame))
        cluster.end()
        cluster = TFCluster.run(spark, stops, None, 1, 0, input_mode=SPARK)
        cluster.train(rdd, num_epochs=3)
        cluster.shutdown()
        print("stopped")
        cluster = TFCluster.run(spark, counts, folder, 1, 0, input_mode=SPARK)
        print("refused:", text_of(cluster.train, rdd.map(fractions.Fraction), num_epochs=1))
        cluster.end()
        cluster = TFCluster.run(spark, sleeps, None, 1, 0, input_mode=SPARK)
        print("stuck:", text_of(cluster.train, rdd, num_epochs=1, feed_timeout=10))
        cluster.end()
        """
    )
    assert re.search(r"failed: True NodeError worker:0 on host .*ValueError: cannot go on", said)
    assert "stopped\n" in said
    assert re.search(r"refused: True NodeError .*fractions\.Fraction are not accepted", said)
    assert re.search(r"stuck: True FeedTimeoutError .*took no rows for 10 s", said)
    assert no_node_left()


class ClusterOf:
    """A fake for the Spark calls that likely_reason() makes."""

    profile = None

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
        (ClusterOf(2, spark_master="local[2]"), r"local\[2\] has 2 for 3 nodes: use local\[3\]"),
        (ClusterOf(2, spark_master="local[4]", spark_task_cpus="2"), r"use local\[6\]"),
        (ClusterOf(0, spark_executor_memory="80g"), r"executors of this memory \(80g\) fit"),
        (
            ClusterOf(1, spark_dynamicAllocation_enabled="TRUE"),
            "spark.dynamicAllocation.enabled is true: set it to false, or .*maxExecutors to 3",
        ),
        (ClusterOf(3), "3 task slots: other jobs may hold them, or .* driver at head:77"),
        (ClusterOf(None), "Spark does not report its number of task slots"),
    ],
)
def test_the_likely_reason_of_missing_nodes(spark, words):
    from hearth.cluster.driver.missing_nodes import likely_reason

    assert re.search(words, likely_reason(spark, 3, ("head", 77)))
