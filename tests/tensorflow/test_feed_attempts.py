"""Repeated attempts at a partition: each row is delivered exactly once, or an error is raised.

A row is a number or begins with one; nodes record the numbers that they receive.
"""

import os
import random
import re
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from hearth.cluster.errors import NodeError
from tensorflowonspark import TFCluster

from test_placements import run_program  # isort: skip

SPARK = TFCluster.InputMode.SPARK


def take_all(notes, ctx):
    """Takes rows slowly, so that more rows are in flight while it handles a batch."""
    feed = ctx.get_data_feed()
    given = []
    while not feed.should_stop():
        batch = feed.next_batch(10)
        given += [row[0] if isinstance(row, tuple) else row for row in batch]
        time.sleep(0.002)
    notes.write(ctx, given)


def take_and_note(notes, ctx):
    """Like take_all(), but not slowed down; creates a file after the first rows."""
    feed = ctx.get_data_feed()
    given = []
    while not feed.should_stop():
        given += [row[0] for row in feed.next_batch(10)]
        Path(notes.folder, ".began").touch()
    notes.write(ctx, given)


def fail_once(kill, at, rows):
    """Passes the rows on. The first attempt fails before row `at`, after a pause for the node."""
    from pyspark import TaskContext

    first = TaskContext.get().attemptNumber() == 0
    for number, row in enumerate(rows):
        if first and number == at:
            time.sleep(0.3)
            if kill:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError("the disk went away")
        yield row


def given(notes):
    return Counter(number for rows in notes.read().values() for number in rows)


def draw_train(draw, spark, cluster, first):
    """Runs one train() with random faults; returns how often each row's number is expected."""
    rows, parts = draw.randint(1, 600), draw.randint(1, 5)
    numbers = range(first, first + rows)
    size = draw.choice([0, 100, 40_000])
    kill, at = draw.random() < 0.5, draw.randrange(max(1, rows // parts))
    epochs = draw.choice([1, 2])
    source = spark.sparkContext.parallelize(numbers, parts)
    if draw.random() < 0.3:
        frame = source.map(lambda n: (n, b"x" * size)).toDF("n long, data binary")

        def faulty(batches):
            import pyarrow as pa

            rows = (row for batch in batches for row in batch.to_pylist())
            for row in fail_once(kill, at, rows):
                yield pa.RecordBatch.from_pylist([row])

        cluster.train(frame.mapInArrow(faulty, frame.schema), num_epochs=epochs)
    else:
        rdd = source.map(lambda n: (n, b"x" * size) if size else n)
        cluster.train(rdd.mapPartitions(lambda part: fail_once(kill, at, part)), num_epochs=epochs)
    return dict.fromkeys(numbers, epochs)


def test_rows_of_tasks_that_fail_at_any_point_are_delivered_once(spark, notes):
    draw = random.Random(13)
    cluster = TFCluster.run(spark, take_all, notes, 2, 0, input_mode=SPARK)
    wanted = {}
    for number in range(6):
        wanted |= draw_train(draw, spark, cluster, number * 1000)
    cluster.shutdown()
    assert given(notes) == wanted


OTHER_ROWS = {
    "in another order": (reversed, r"partition 0 has other rows, .*files, a checkpoint\(\)"),
    "none at all": (lambda rows: [], r"partitions \[0\] had rows .* but are empty now"),
}


@pytest.mark.parametrize("kind", OTHER_ROWS)
def test_a_retried_task_with_other_rows_is_an_error(sc, notes, kind):
    change, words = OTHER_ROWS[kind]

    def other_again(part):
        from pyspark import TaskContext

        rows = [(n, b"x" * 40_000) for n in part]
        if TaskContext.get().attemptNumber():
            yield from change(rows)
            return
        yield from rows[:100]
        deadline = time.monotonic() + 60
        while not os.path.exists(began_file) and time.monotonic() < deadline:
            time.sleep(0.05)
        raise OSError("the disk went away")

    began_file = os.path.join(notes.folder, ".began")
    cluster = TFCluster.run(sc, take_and_note, notes, 1, 0, input_mode=SPARK)
    rows = sc.parallelize(range(200), 1).mapPartitions(other_again)
    began = time.monotonic()
    with pytest.raises(NodeError, match=words):
        cluster.train(rows, num_epochs=1)
    assert time.monotonic() - began < 60
    cluster.shutdown()
    assert set(given(notes).values()) == {1}  # the job failed, but no row was repeated


def test_results_of_failed_tasks_are_returned_once(sc):
    def main(arguments, ctx):
        feed = ctx.get_data_feed(train_mode=False)
        while not feed.should_stop():
            rows = feed.next_batch(7)
            feed.batch_results([row[0] for row in rows])

    with TFCluster.run(sc, main, {}, 2, 0, input_mode=SPARK) as cluster:
        rows = sc.parallelize(range(300), 4).map(lambda n: (n, b"x" * 40_000))
        for kill in (False, True):
            faulty = rows.mapPartitions(lambda part, kill=kill: fail_once(kill, 60, part))
            assert cluster.inference(faulty).collect() == list(range(300))


TOKENS = """
import json, os, sys, time
from pathlib import Path

conf = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": f"file://{folder}/events",
    "spark.eventLog.compress": "false",
}
words = [f"--conf {key}={value}" for key, value in conf.items()]
os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*words, "pyspark-shell"])
os.mkdir(f"{folder}/events")
os.dup2(os.open(f"{folder}/driver.log", os.O_CREAT | os.O_WRONLY), 2)
spark = spark_session.start("tokens", executors=2)
sc = spark.sparkContext
tokens = []

def take(feed):
    rows = feed.next_batch(10)
    return [row["n"] if isinstance(row, dict) else row[0] for row in rows]

def note(args, ctx):
    feed, given = ctx.get_data_feed(), []
    while not feed.should_stop():
        given += take(feed)
    Path(args, f"given{ctx.task_index}").write_text(json.dumps(given))

def echo(args, ctx):
    feed = ctx.get_data_feed(train_mode=False)
    while not feed.should_stop():
        feed.batch_results(take(feed))

def run(main):
    cluster = TFCluster.run(sc, main, folder, 2, 0, input_mode=SPARK)
    tokens.append(str(cluster.cluster_meta["token"]))
    return cluster

rows = sc.parallelize(range(2000), 8).map(lambda n: (n, b"x" * 40_000))
with run(note) as cluster:
    cluster.train(rows, num_epochs=1)
given = [n for i in (0, 1) for n in json.loads(Path(folder, f"given{i}").read_text())]
print("given", len(given), len(set(given)))
with run(echo) as cluster:
    print("results", cluster.inference(rows).collect() == list(range(2000)))
    frame = rows.toDF("n long, data binary")
    print("frame", len(cluster.inference(frame, schema="n long").collect()))
with run(fails) as cluster:
    try:
        cluster.train(spark.range(0, 1000, 1, 4), num_epochs=1)
    except Exception as error:
        print("failed", error)
    cluster.end()
    cluster._ended = True
work = Path(os.environ["SPARK_HOME"], "work")
found = {file: file.read_bytes() for file in work.rglob("*") if file.name in ("stderr", "stdout")}
spark.stop()
found |= {file: file.read_bytes() for file in Path(folder).rglob("*") if file.is_file()}
print("event log", any(b"SparkListenerTaskEnd" in text for text in found.values()))
for token in tokens:
    for word in (token.encode(), token.upper().encode(), bytes.fromhex(token)):
        print("in", [str(name) for name, text in found.items() if word in text])
    assert token not in str(given)
    print("token", token)
"""


def test_no_log_of_the_driver_or_of_events_holds_a_token(tmp_path):
    said = run_program(TOKENS, tmp_path / "spec")
    assert "given 2000 2000\n" in said
    assert "results True\n" in said
    assert "frame 2000\n" in said
    assert "cannot go on" in said
    assert "event log True\n" in said
    tokens = re.findall(r"^token (\w{64})$", said, re.MULTILINE)
    assert len(tokens) == 3
    assert said.count("in []\n") == 9
    assert all(said.count(token) == 1 for token in tokens)
