"""A lost executor: how the driver reports it, and how a cluster with restart=True restarts."""

import json
import os
import signal
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hearth.cluster.driver import row_sender
from hearth.cluster.errors import ClusterError, NodeError
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
    """Kills the last node's executor once `condition` is true; appends the time to `killed`."""

    def kill():
        wait_for(condition)
        killed.append(time.monotonic())
        os.kill(cluster.cluster_info[-1]["executor_pid"], signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def slow_keras(folder, ctx):
    """Every row changes a different weight; the weights are saved after every third batch."""
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
            if len(given) == 144 and not ctx.restart_count:
                threading.Event().wait()  # leaves rows for after the restart
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
    assert (times > 0).all()  # the saved weights include every row
    given = [json.loads((tmp_path / f"given{i}").read_text()) for i in range(2)]
    assert [count for count, _ in given] == [1, 1]
    again = sum(len(rows) for _, rows in given)
    assert ROWS / 4 < again < ROWS - 100  # committed rows were not repeated
    assert no_node_left()


def note_start(folder, ctx):
    """The first start waits to be killed; later ones end."""
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


def test_uncommitted_rows_of_an_earlier_train_call_are_sent_again(sc, notes):
    def main(notes, ctx):
        feed = ctx.get_data_feed()
        rows = []
        while not feed.should_stop():
            rows += feed.next_batch(10)
            if ctx.restart_count == 0 and len(rows) == 50:
                feed.commit()
        notes.write(ctx, rows)

    cluster = TFCluster.run(sc, main, notes, 1, 0, input_mode=SPARK, restart=True)
    cluster.train(sc.parallelize(range(50), 1), num_epochs=1)  # committed with the 50th row
    cluster.train(sc.parallelize(range(100, 150), 1), num_epochs=1)
    os.kill(cluster.cluster_info[0]["executor_pid"], signal.SIGKILL)
    cluster.train(sc.parallelize(range(200, 230), 1), num_epochs=2)
    cluster.shutdown()
    rows = notes.read()["worker0"]
    assert rows == [*range(100, 150), *range(200, 230), *range(200, 230)]


def takes_no_rows(arguments, ctx):
    """Blocks, so that train() and the main function run until the lost executor is detected."""
    threading.Event().wait()


def test_a_cluster_that_cannot_restart_reports_the_reason(sc, monkeypatch, caplog):
    from hearth.spark import slots

    monkeypatch.setattr(slots, "_WAIT", "1s")
    cluster = TFCluster.run(sc, takes_no_rows, {}, 1, 0, input_mode=SPARK, restart=True)
    monkeypatch.setattr(slots, "slots_now", lambda session, profile: 0)
    os.kill(cluster.cluster_info[0]["executor_pid"], signal.SIGKILL)
    with pytest.raises(ClusterError, match="1 ranks need 1 task slots"):
        cluster.train(sc.parallelize(range(100), 2), num_epochs=1)
    assert "waiting for executors: 0 of 1 slots" in caplog.text
    with pytest.raises(NodeError, match=r"went away.*could not restart: 1 ranks need 1"):
        cluster.shutdown()


@pytest.mark.parametrize("found", [0, 1])  # while it waits for slots, and when it has them
def test_a_cluster_that_is_ended_while_it_waits_for_executors_stays_ended(sc, monkeypatch, found):
    from hearth.spark import slots

    cluster = TFCluster.run(sc, takes_no_rows, {}, 1, 0, input_mode=SPARK, restart=True)

    def end_meanwhile(session, profile):
        cluster.end()
        return found

    monkeypatch.setattr(slots, "slots_now", end_meanwhile)
    os.kill(cluster.cluster_info[0]["executor_pid"], signal.SIGKILL)
    with pytest.raises(ClusterError, match="was ended before it could restart"):
        cluster.train(sc.parallelize(range(100), 2), num_epochs=1)
    assert no_node_left()


def test_a_program_that_fails_by_itself_is_not_started_again(sc, tmp_path):
    def main(folder, ctx):
        Path(folder, f"{ctx.task_index}-{ctx.restart_count}").touch()
        raise ValueError("my own fault")

    with pytest.raises(NodeError, match="my own fault"):
        TFCluster.run(sc, main, str(tmp_path), 2, 0, restart=True).shutdown()
    assert all(file.name.endswith("-0") for file in tmp_path.iterdir())


def test_without_restart_the_failure_reports_the_remaining_rows(sc, tmp_path, monkeypatch):
    def main(folder, ctx):
        feed = ctx.get_data_feed()
        feed.next_batch(10)
        Path(folder, f"took{ctx.task_index}").touch()
        threading.Event().wait()

    monkeypatch.setattr(row_sender, "_COUNT_S", 60.0)  # allows Spark's count time on a busy machine
    cluster = TFCluster.run(sc, main, str(tmp_path), 2, 0, input_mode=SPARK)
    killed = []
    kill_when(cluster, lambda: len(list(tmp_path.iterdir())) == 2, killed)
    words = r"worker:\d on host \S+ went away.*; (\d+) of 100000 rows were not consumed"
    with pytest.raises(NodeError, match=words) as found:
        cluster.train(sc.parallelize(range(100000), 8), num_epochs=1)
    assert time.monotonic() - killed[0] < 60
    left = int(str(found.value).split("; ")[-1].split()[0])
    assert 90000 < left < 100000  # the nodes received at least ten rows
    with pytest.raises(NodeError, match=words):
        cluster.shutdown()


def takes_ids(notes, ctx, most=None):
    """Saves its rows with each commit(), as a program saves its checkpoint.

    Before a restart, it stops once it has `most` rows, and waits to be killed.
    """
    kept = Path(notes.folder, f"kept{ctx.task_index}")
    given = json.loads(kept.read_text()) if kept.exists() else []
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        batch = feed.next_batch(25)
        given += [
            int(getattr(row, "id", row[0] if isinstance(row, tuple) else row)) for row in batch
        ]
        new = kept.with_name(f".{kept.name}")
        new.write_text(json.dumps(given))
        os.replace(new, kept)
        feed.commit()
        if most is not None and not ctx.restart_count and len(given) >= most:
            threading.Event().wait()
        time.sleep(0.02)


def train_through_a_kill(sc, notes, rows, meanwhile=lambda: None):
    """Kills one executor during a run; returns how often each number was committed."""
    # However late the kill is, rows are left for the nodes after their restart.
    main = partial(takes_ids, most=225)
    cluster = TFCluster.run(sc, main, notes, 2, 0, input_mode=SPARK, restart=True)
    kept = [Path(notes.folder, f"kept{i}") for i in range(2)]

    def is_time():
        # Counts both nodes' rows, because Spark may give one node most of the partitions.
        return sum(len(json.loads(file.read_text())) for file in kept if file.exists()) > 300

    thread = kill_when(cluster, is_time, [])
    try:
        cluster.train(rows, num_epochs=1)
        cluster.shutdown()
    finally:
        cluster.end()
        thread.join()
    return Counter(n for file in kept for n in json.loads(file.read_text()))


def test_rows_of_a_shuffled_frame_are_in_the_same_partitions_after_a_restart(spark, notes):
    source = str(Path(notes.folder, "source"))
    spark.range(0, 1600, 1, 4).write.parquet(source)
    frame = spark.read.parquet(source).repartition(16)
    given = train_through_a_kill(spark.sparkContext, notes, frame.rdd.map(lambda row: row.id))
    assert set(given) == set(range(1600))  # no row is lost
    # Only the few partitions in flight were repeated, not the committed ones.
    assert sum(given.values()) - 1600 <= 4 * 100


def test_a_planned_frame_keeps_its_partitions_under_a_changed_plan(spark, tmp_path):
    from hearth.spark.access import ClassicSpark

    spark.range(0, 1000, 1, 8).write.parquet(str(tmp_path / "rows"))
    frame = spark.read.parquet(str(tmp_path / "rows"))

    def numbers(batches):
        import pyarrow as pa
        from pyspark import TaskContext

        for batch in batches:
            part = pa.array([TaskContext.get().partitionId()] * len(batch), pa.int64())
            yield pa.record_batch({"id": batch.column(0), "part": part})

    def locations(rows):
        return sorted(map(tuple, rows.mapInArrow(numbers, "id long, part long").collect()))

    pinned = ClassicSpark(spark).pin(frame)
    before, before_pinned = locations(frame), locations(pinned)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "600")
    spark.conf.set("spark.sql.files.openCostInBytes", "0")
    try:
        assert locations(frame) != before  # like after a change of executors
        assert locations(pinned) == before_pinned
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        spark.conf.unset("spark.sql.files.openCostInBytes")


def test_rows_with_changing_partitions_are_refused_before_any_is_sent(sc, notes):
    shuffled = sc.parallelize(range(400), 8).map(lambda n: (n, n)).partitionBy(8)
    with TFCluster.run(sc, takes_ids, notes, 1, 0, input_mode=SPARK, restart=True) as cluster:
        for rows in (shuffled.repartition(16), shuffled.repartition(16).map(lambda n: n)):
            with pytest.raises(ValueError, match=r"other partitions when Spark recomputes.*files"):
                cluster.train(rows, num_epochs=1)
        assert not Path(notes.folder, "kept0").exists()
        cluster.train(shuffled.map(lambda pair: pair[0]), num_epochs=1)
    assert sorted(json.loads(Path(notes.folder, "kept0").read_text())) == list(range(400))


def changed_when(marker, index, part):
    rows = [n + 10000 if os.path.exists(marker) else n for n in part]
    return iter(rows)


@pytest.mark.parametrize("changes", [False, True])
def test_safe_rows_that_spark_plans_unseen_are_compared(sc, notes, monkeypatch, changes):
    """Spark Connect, for example, does not reveal whether partitions stay unchanged."""
    from hearth.spark.access import ClassicSpark
    from hearth.spark.slots import SlotWait

    monkeypatch.setattr(ClassicSpark, "pins", False)
    marker = str(Path(notes.folder, ".changed"))
    wait = SlotWait.wait

    def wait_and_change(self):
        if changes:
            Path(marker).touch()
        wait(self)

    monkeypatch.setattr(SlotWait, "wait", wait_and_change)
    rows = sc.parallelize(range(800), 8)
    rows = rows.mapPartitionsWithIndex(partial(changed_when, marker))
    if changes:
        with pytest.raises(NodeError, match=r"partition \d has other rows"):
            train_through_a_kill(sc, notes, rows)
        return
    given = train_through_a_kill(sc, notes, rows)
    assert set(given) == set(range(800))
    assert sum(given.values()) - 800 <= 4 * 100


def test_a_stream_cannot_feed_a_cluster_that_starts_again():
    class Stream:
        def foreachRDD(self, _):
            pytest.fail("the stream was taken")

    feeds = row_sender.RowSender(None, None, None, object(), None, None)
    with pytest.raises(ValueError, match="DStream cannot be replayed"):
        feeds.train(Stream(), 1, 600.0, "input")
