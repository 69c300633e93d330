"""Datasets' rows arrive once despite disturbances during delivery: odd settings, a lost executor,
other clusters in the session, Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager

import pytest
from node_notes import Notes
from py4j.protocol import Py4JError

from hearth.torch import TorchCluster

LARGE = 40_000


def take_epochs(notes, ctx):
    """Takes two epochs, and notes the ids of each."""
    loader = ctx.dataset("train", 16, uneven="weight")
    epochs = []
    for _ in range(2):
        epochs.append([])
        for batch in loader:
            assert {len(text) for text in batch.get("text", ())} <= {LARGE}
            epochs[-1] += batch["id"][batch["row_weight"] > 0].tolist()
    notes.write(ctx, epochs)


def check(notes, rows):
    for epoch in (0, 1):
        ids = sorted(i for node in notes.read().values() for i in node[epoch])
        assert ids == list(range(rows))


@contextmanager
def settings(spark, **conf):
    """Sets Spark SQL settings temporarily; `__` in a name stands for a dot."""
    names = {f"spark.sql.{key.replace('__', '.')}": value for key, value in conf.items()}
    before = {name: spark.conf.get(name) for name in names}
    try:
        for name, value in names.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def held_until(file, frame):
    """The same frame, with each partition delayed until the file exists."""

    def wait(batches):
        for batch in batches:
            while not os.path.exists(file):
                time.sleep(0.05)
            yield batch

    return frame.mapInArrow(wait, frame.schema)


def test_large_rows_of_many_partitions_are_delivered_once(spark, notes):
    odd = {"adaptive__enabled": "false", "execution__arrow__maxRecordsPerBatch": "7"}
    with settings(spark, **odd, autoBroadcastJoinThreshold="-1", shuffle__partitions="200"):
        some = spark.range(0, 600, 1, 200).selectExpr("id", f"repeat(id % 10, {LARGE}) text")
        frame = some.join(spark.range(0, 600, 1, 3), "id")
        TorchCluster.run(spark, take_epochs, notes, 2, datasets={"train": frame}).shutdown()
    check(notes, 600)


def test_two_clusters_of_one_session_take_separate_rows(spark, tmp_path):
    def run(name, rows):
        notes = Notes(str(tmp_path / name))
        datasets = {"train": spark.range(0, rows, 1, 3)}
        TorchCluster.run(spark, take_epochs, notes, 1, datasets=datasets).shutdown()

    threads = []
    for name, rows in (("one", 300), ("two", 400)):
        (tmp_path / name).mkdir()
        threads.append(threading.Thread(target=run, args=(name, rows)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    check(Notes(str(tmp_path / "one")), 300)
    check(Notes(str(tmp_path / "two")), 400)


def take_epochs_after_a_loss(args, ctx):
    """Like take_epochs(), but the first start does not end before the file exists."""
    notes, lost = args
    take_epochs(notes, ctx)
    while not ctx.restart_count and not os.path.exists(lost):
        time.sleep(0.02)


def test_an_executor_that_is_lost_while_rows_are_delivered_is_replaced(spark, notes, tmp_path):
    datasets, lost = {"train": spark.range(0, 900, 1, 3)}, tmp_path / "lost"
    cluster = TorchCluster.run(
        spark, take_epochs_after_a_loss, (notes, str(lost)), 2, datasets=datasets, restart=True
    )
    until = time.monotonic() + 60
    while "train 0 of" in cluster.datasets.line() and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(cluster.nodes[1]["executor_pid"], signal.SIGKILL)
    lost.touch()
    cluster.shutdown()
    assert cluster.restarts.count == 1
    check(notes, 900)


@pytest.mark.parametrize("when", ["run", "shutdown"])
def test_a_run_after_one_that_was_interrupted_gets_its_rows(spark, notes, tmp_path, when):
    (tmp_path / "first").mkdir()
    first, jobs = Notes(str(tmp_path / "first")), spark.sparkContext.statusTracker()

    def interrupt():
        until = time.monotonic() + 60
        while not jobs.getActiveJobsIds() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    def run(frame, notes, begun=lambda: None):
        cluster = TorchCluster.run(spark, take_epochs, notes, 2, datasets={"train": frame})
        begun()
        cluster.shutdown()

    thread = threading.Thread(target=interrupt)
    if when == "run":
        thread.start()
    held = held_until(str(tmp_path / "interrupted"), spark.range(0, 900, 1, 3))
    with pytest.raises((KeyboardInterrupt, Py4JError)):  # py4j raises its own error while it sends
        run(held, first, thread.start if when != "run" else print)
    (tmp_path / "interrupted").touch()
    thread.join()
    run(spark.range(0, 300, 1, 3), notes)
    assert first.read() == {}
    check(notes, 300)
