"""hearth.cluster without a framework: main functions in plain Python."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hearth import cluster
from hearth.cluster.task.node_process import executor_pid

from conftest import no_node_left  # isort: skip

FRAMEWORKS = ("tensorflow", "torch", "keras", "hearth.tensorflowonspark", "tensorflowonspark")


def loaded_frameworks() -> list[str]:
    return [name for name in FRAMEWORKS if name in sys.modules]


class Sink:
    """Collects values from the nodes of plain programs, in one file per node."""

    def __init__(self, folder):
        self.folder = str(folder)

    def write(self, ctx, values):
        with open(f"{self.folder}/{ctx.role}-{ctx.index}", "a", encoding="utf-8") as file:
            file.write("".join(f"{value}\n" for value in values))

    def read(self):
        files = sorted(Path(self.folder).iterdir())
        return [line for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def sink(tmp_path):
    folder = tmp_path / "sink"
    folder.mkdir()
    return Sink(folder)


def test_rows_are_fed_and_no_framework_is_loaded(spark, sink):
    def main(sink, ctx):
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            batch = feed.next_numpy(7)
            if batch is not None:
                assert isinstance(batch["id"], np.ndarray)
                sink.write(ctx, batch["id"].tolist())
        sink.write(ctx, loaded_frameworks())

    with cluster.run(spark, main, sink, nodes=2) as nodes:
        nodes.train(spark.range(100), epochs=2)
        # Other columns than before, and a row that is larger than a feed's ring.
        nodes.train(spark.sql("SELECT repeat('x', 20000000) AS text, 100L AS id"), epochs=2)
        with pytest.raises(ValueError, match="no feed 'inputs'; its feeds: input"):
            nodes.train(spark.range(1), feed="inputs")
        with pytest.raises(ValueError, match="column 'day' has the type date, which feeds"):
            nodes.train(spark.sql("SELECT current_date() AS day"))
    assert sorted(map(int, sink.read())) == sorted([*range(101)] * 2)
    assert no_node_left()


def test_results_are_returned_in_order(spark):
    def main(_, ctx):
        feed = ctx.get_data_feed(train_mode=False)
        while not feed.should_stop():
            feed.batch_results([row[0] ** 2 for row in feed.next_batch(5)])

    with cluster.run(spark, main, nodes=2) as nodes:
        squares = nodes.inference(spark.range(40), schema="square long").collect()
    assert [row.square for row in squares] == [n**2 for n in range(40)]


def test_nodes_of_several_roles_know_each_other(spark, sink):
    def main(sink, ctx):
        addresses = {role: len(nodes) for role, nodes in ctx.cluster_spec.items()}
        sink.write(ctx, [f"{ctx.node_id} {ctx.role}:{ctx.index} {ctx.share()} {addresses}"])

    cluster.run(
        spark, main, sink, roles_of_nodes={"chief": 1, "worker": 1}, feeds=()
    ).shutdown()  # fmt: skip
    everyone = "{'chief': 1, 'worker': 1}"
    assert sink.read() == [f"0 chief:0 (0, 2) {everyone}", f"1 worker:0 (1, 2) {everyone}"]


def test_a_killed_node_is_named_with_its_signal(spark, sink):
    def main(_, ctx):
        if ctx.index == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        feed = ctx.get_data_feed()
        while not feed.should_stop():  # returning early would be another error
            feed.next_batch(1)

    with pytest.raises(cluster.NodeError, match=r"worker:1 on host .*SIGKILL"):  # noqa: SIM117
        with cluster.run(spark, main, sink, nodes=2) as nodes:
            nodes.train(spark.range(50))
    assert no_node_left()


VICTIMS = {"executor": executor_pid, "supervisor": os.getppid, "node": os.getpid}


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_killed_process_costs_a_restart_and_no_row(spark, sink, victim):
    def main(sink, ctx):
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            rows = [row[0] for row in feed.next_batch(10)]
            if rows and ctx.index == 0 and not ctx.restart_count:
                os.kill(VICTIMS[victim](), signal.SIGKILL)
            sink.write(ctx, rows)
            feed.commit()

    with cluster.run(spark, main, sink, nodes=2, restart=True) as nodes:
        nodes.train(spark.range(0, 200, 1, 8))
    # A partition with uncommitted rows is sent again completely, so rows may be repeated.
    assert {int(row) for row in sink.read()} == {*range(200)}
    assert nodes.restarts.count == 1
    assert no_node_left()


def test_a_process_that_is_killed_again_without_a_checkpoint_is_not_started_again(spark, sink):
    def main(sink, ctx):
        sink.write(ctx, [ctx.restart_count])
        os.kill(os.getpid(), signal.SIGKILL)

    nodes = cluster.run(spark, main, sink, nodes=1, feeds=(), restart=True)
    words = r"worker:0 on host \S+ failed: .*SIGKILL.* second such kill without a checkpoint"
    for _ in range(2):
        with pytest.raises(cluster.NodeError, match=words):
            nodes.shutdown()
    assert sink.read() == ["0", "1"]
    assert no_node_left()


def takes_all(_, ctx):
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        feed.next_batch(100)


def fails_at_seven(row):
    return 1 // (row - 7)


def test_rows_that_cannot_be_fed_are_an_error_in_one_line(spark, tmp_path):
    stream = spark.readStream.format("rate").load()
    refused = [
        (
            pd.DataFrame({"x": [1]}),
            TypeError,
            r"not a pandas\.DataFrame: use spark\.create",
        ),
        ([1, 2], TypeError, r"not a builtins\.list"),
        (
            stream,
            ValueError,
            r"not accept a streaming DataFrame: feed its batches .*foreachBatch\(",
        ),
        (
            spark.sparkContext.parallelize(range(10), 1).map(fails_at_seven),
            cluster.ClusterError,
            r"could not compute or send the rows: ZeroDivisionError: [^\n]*$",
        ),
        (
            spark.range(9).selectExpr("bigint(raise_error('mine'))"),
            cluster.ClusterError,
            r"rows: .*mine",
        ),
    ]
    with cluster.run(spark, takes_all, nodes=1) as nodes:
        for rows, kind, words in refused:
            with pytest.raises(kind, match=words):
                nodes.train(rows)
        with pytest.raises(TypeError, match=r"inference\(\) takes a DataFrame or an RDD"):
            nodes.inference([1])
        nodes.train(spark.range(10))
    with pytest.raises(cluster.ClusterError, match=r"the cluster has ended: call train"):
        nodes.train(spark.range(10))


def test_requesting_results_after_the_end_of_the_cluster_is_an_error(spark):
    def main(_, ctx):
        feed = ctx.get_data_feed(train_mode=False)
        while not feed.should_stop():
            feed.batch_results(feed.next_batch(5))

    with cluster.run(spark, main, nodes=1) as nodes:
        late = nodes.inference(spark.range(4).rdd)
    with pytest.raises(Exception, match=r"worker:0 on host \S+ has ended.*collect or write them"):
        late.collect()


def test_nodes_report_and_return_without_a_framework_until_the_driver_stops_them(spark, capsys):
    def main(_, ctx):
        for step in itertools.count(1):
            ctx.report({"of/node": np.float32(ctx.share()[0])}, step=step)
            if ctx.should_stop:  # after the report, as the other node's may trigger the stop
                break
            time.sleep(0.01)
        print("stopped at", step)
        return {"index": ctx.index, "array": np.arange(2), "loaded": loaded_frameworks()}

    arrived = threading.Event()
    with cluster.run(
        spark, main, nodes=2, feeds=(), logs="all", on_report=lambda report: arrived.set()
    ) as nodes:
        assert arrived.wait(120)
        nodes.stop_training()
        found = nodes.result()
    assert [each["index"] for each in found] == [0, 1]
    assert all(list(each["array"]) == [0, 1] and not each["loaded"] for each in found)
    values = {(row.rank, row.name, row.value) for row in nodes.history.collect()}
    assert values == {(0, "of/node", 0.0), (1, "of/node", 1.0)}
    shown = capsys.readouterr().err
    assert "[rank 0 " in shown and "[rank 1 " in shown and "] stopped at " in shown
