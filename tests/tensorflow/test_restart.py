"""A lost executor: what the driver is told, and how a cluster with restart=True goes on."""

import json
import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hearth.tensorflowonspark import cluster_feed
from hearth.tensorflowonspark.errors import ClusterError, NodeError
from hearth.tensorflowonspark.feed_progress import Ledger, RowCount
from tensorflowonspark import TFCluster

from conftest import no_node_left  # isort: skip

SPARK = TFCluster.InputMode.SPARK
ROWS = 400


def wait_for(condition, timeout_s=120):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill_when(cluster, condition, killed):
    """Kills the executor of the last node, once `condition`; the time of it goes into `killed`."""

    def kill():
        wait_for(condition)
        killed.append(time.monotonic())
        os.kill(cluster.cluster_info[-1]["executor_pid"], signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def slow_keras(folder, ctx):
    """Every row moves a weight of its own; the weights are kept every third batch."""
    import keras

    model = keras.Sequential(
        [
            keras.layers.Input((ROWS,)),
            keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros"),
        ]
    )
    model.compile(keras.optimizers.SGD(1.0), loss=lambda wanted, found: -found)
    mine = Path(folder, f"worker{ctx.task_index}.weights.h5")
    if ctx.restart_count:
        model.load_weights(mine)
    feed = ctx.get_data_feed()
    given = []

    def keep():
        model.save_weights(mine.with_stem(f"new-{mine.stem}"))
        os.replace(mine.with_stem(f"new-{mine.stem}"), mine)
        feed.commit()
        Path(folder, f"kept-{ctx.restart_count}-{ctx.task_index}-{len(given)}").touch()

    while not feed.should_stop():
        rows = feed.next_batch(4)
        if rows:
            given += rows
            model.train_on_batch(np.eye(ROWS, dtype=np.float32)[rows], np.zeros((len(rows), 1)))
            if len(given) % 12 == 0:
                keep()
            time.sleep(0.05)
    keep()
    Path(folder, f"given{ctx.task_index}").write_text(json.dumps([ctx.restart_count, given]))


def test_a_keras_model_that_checkpoints_has_seen_every_row(sc, tmp_path):
    pytest.importorskip("tensorflow")
    import h5py

    cluster = TFCluster.run(sc, slow_keras, str(tmp_path), 2, 0, input_mode=SPARK, restart=True)
    mine = [tmp_path / f"worker{i}.weights.h5" for i in range(2)]
    kill_when(cluster, lambda: len(list(tmp_path.glob("kept-0-*"))) >= 12, [])
    cluster.train(sc.parallelize(range(ROWS), 20), num_epochs=1)
    cluster.shutdown()
    times = np.zeros(ROWS)
    for file in mine:
        with h5py.File(file) as weights:
            names = []
            weights.visit(names.append)
            (kernel,) = [n for n in names if isinstance(weights[n], h5py.Dataset) and "layers" in n]
            times += weights[kernel][:, 0]
    assert (times > 0).all()  # every row is in the weights that were kept
    given = [json.loads((tmp_path / f"given{i}").read_text()) for i in range(2)]
    assert [count for count, _ in given] == [1, 1]
    again = sum(len(rows) for _, rows in given)
    assert ROWS / 4 < again < ROWS - 100  # what was safe did not come again
    assert no_node_left()


def note_start(folder, ctx):
    """Waits to be killed in its first life."""
    Path(folder, f"{ctx.job_name}{ctx.task_index}-{ctx.restart_count}").touch()
    if not ctx.restart_count:
        threading.Event().wait()


def test_nodes_that_read_files_start_again_too(sc, tmp_path):
    cluster = TFCluster.run(sc, note_start, str(tmp_path), 2, 0, restart=True)
    kill_when(cluster, lambda: len(list(tmp_path.iterdir())) == 2, [])
    cluster.shutdown()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "worker0-0", "worker0-1", "worker1-0", "worker1-1",
    ]  # fmt: skip
    assert no_node_left()


def test_rows_of_an_earlier_train_that_were_not_safe_come_again(sc, notes):
    def main(notes, ctx):
        feed = ctx.get_data_feed()
        rows = []
        while not feed.should_stop():
            rows += feed.next_batch(10)
            if ctx.restart_count == 0 and len(rows) == 50:
                feed.commit()
        notes.write(ctx, rows)

    cluster = TFCluster.run(sc, main, notes, 1, 0, input_mode=SPARK, restart=True)
    cluster.train(sc.parallelize(range(50), 1), num_epochs=1)  # is safe when 50 rows were given
    cluster.train(sc.parallelize(range(100, 150), 1), num_epochs=1)
    os.kill(cluster.cluster_info[0]["executor_pid"], signal.SIGKILL)
    cluster.train(sc.parallelize(range(200, 230), 1), num_epochs=2)
    cluster.shutdown()
    rows = notes.read()["worker0"]
    assert rows == [*range(100, 150), *range(200, 230), *range(200, 230)]


def test_a_cluster_that_cannot_start_again_says_why(sc, monkeypatch):
    from hearth import HearthError, preflight

    def never(spark, ranks):
        raise HearthError(f"{ranks} ranks need {ranks} task slots")

    def main(arguments, ctx):
        ctx.get_data_feed().next_batch(1)

    monkeypatch.setattr(preflight, "wait_for_replacements", never)
    cluster = TFCluster.run(sc, main, {}, 1, 0, input_mode=SPARK, restart=True)
    os.kill(cluster.cluster_info[0]["executor_pid"], signal.SIGKILL)
    with pytest.raises(ClusterError, match="1 ranks need 1 task slots"):
        cluster.train(sc.parallelize(range(100), 2), num_epochs=1)
    with pytest.raises(NodeError, match=r"went away.*could not start again: 1 ranks need 1"):
        cluster.shutdown()


def test_a_program_that_fails_by_itself_is_not_started_again(sc, tmp_path):
    def main(folder, ctx):
        Path(folder, f"{ctx.task_index}-{ctx.restart_count}").touch()
        raise ValueError("my own fault")

    with pytest.raises(NodeError, match="my own fault"):
        TFCluster.run(sc, main, str(tmp_path), 2, 0, restart=True).shutdown()
    assert all(file.name.endswith("-0") for file in tmp_path.iterdir())


def test_without_restart_the_failure_says_how_many_rows_were_left(sc, tmp_path):
    def main(folder, ctx):
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            feed.next_batch(10)
            Path(folder, f"took{ctx.task_index}").touch()
            time.sleep(0.01)

    cluster = TFCluster.run(sc, main, str(tmp_path), 2, 0, input_mode=SPARK)
    killed = []
    kill_when(cluster, lambda: len(list(tmp_path.iterdir())) == 2, killed)
    words = r"worker:\d on host \S+ went away.*; (\d+) of 100000 rows were not consumed"
    with pytest.raises(NodeError, match=words) as found:
        cluster.train(sc.parallelize(range(100000), 8), num_epochs=1)
    assert time.monotonic() - killed[0] < 10
    left = int(str(found.value).split("; ")[-1].split()[0])
    assert 90000 < left < 100000  # the nodes were given ten rows at least
    with pytest.raises(NodeError, match=words):
        cluster.shutdown()


class OfFeed:
    """What RowCount asks of a partition."""

    def __init__(self, index):
        self.feed, self.index, self.taken = "f", index, 0


def test_a_partition_is_safe_when_all_its_rows_were_taken_before_a_commit():
    ledger = Ledger()
    ledger.open("f")
    count = RowCount(lambda event: ledger.note(0, event))
    first, second = OfFeed(1), OfFeed(2)
    count.take(first, 10)
    count.commit()
    assert ledger.safe("f") == frozenset()  # it is not known yet that these were all rows
    count.complete(first)
    assert ledger.safe("f") == {1}
    count.take(second, 5)
    count.complete(second)
    assert ledger.safe("f") == {1}
    assert ledger.taken("f") == 15
    count.commit()
    assert ledger.safe("f") == {1, 2}
    ledger.close("f")
    count.commit()
    assert (ledger.taken("f"), ledger.safe("f")) == (0, frozenset())


def test_a_stream_cannot_feed_a_cluster_that_starts_again():
    class Stream:
        def foreachRDD(self, _):
            pytest.fail("the stream was taken")

    cluster = SimpleNamespace(restarts=object())
    with pytest.raises(ValueError, match="DStream cannot be read again"):
        cluster_feed.train(cluster, Stream(), 1, 600.0, "input")
