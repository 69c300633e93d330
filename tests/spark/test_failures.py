"""After any failure the driver soon reports the rank and the reason, and no process remains."""

import os
import signal
import socket
import tempfile
import threading
import time

import pytest
from faults import trainers

from hearth import HearthError
from hearth.caffe_jobs.launch import session_conf
from hearth.caffeonspark import CaffeOnSpark, DataSource, FlagError
from hearth.errors import UnavailableError
from hearth.spark import session as spark_session

from waiting import wait_until  # isort: skip


@pytest.fixture
def earlier(spark):
    """Trainers that earlier tests' predictions left running; they end with their Python workers."""
    return frozenset(trainers())


def no_trainer_left(earlier):
    return wait_until(lambda: set(trainers()) <= earlier, 30)


def train(spark, conf, rows=None):
    sources = DataSource(spark)
    source = sources.fromDataFrame(conf, rows, True) if rows else sources.getSource(conf, True)
    CaffeOnSpark(spark).train(source)


def test_a_failing_ranks_message_reaches_the_driver_soon(spark, digits, trained, earlier):
    conf = digits.config(spark, digits.solver("cos", max_iter=100000), clusterSize="2")
    rows = spark.read.parquet(digits.table("raw", "train"))
    rows = rows.selectExpr("id", "map(label, label) as label", "image")
    seen, at = {}, []

    def has_ended():  # a trainer ends after it has reported its failure
        now = set(trainers()) - earlier
        seen.update({pid: time.monotonic() for pid in now - set(seen)})
        return set(seen) - now

    def note_failure():
        assert wait_until(has_ended, 120)
        at.append(time.monotonic())

    watcher = threading.Thread(target=note_failure)
    watcher.start()
    with pytest.raises(HearthError, match=r"rank \d on host \S+ failed: .*label"):
        train(spark, conf, rows)
    reported = time.monotonic()
    watcher.join()
    assert reported - at[0] < 30
    assert reported - min(seen.values()) < 60  # and soon after the first trainer started
    assert no_trainer_left(earlier)


def test_a_net_that_cannot_be_built_names_its_layer(spark, digits, trained):
    solver = digits.solver("memory", max_iter=5)
    net = solver.replace("_solver", "_net")
    with open(net, "a", encoding="utf-8") as file:
        file.write(
            'layer { name: "odd" type: "Concat" bottom: "ip1" bottom: "conv1" top: "odd" }\n'
        )
    with pytest.raises(HearthError, match=r"rank \d on host \S+ failed: .*odd"):
        train(spark, digits.config(spark, solver, clusterSize="2"))


def test_a_killed_trainer_is_named_and_the_others_end(spark, digits, earlier):
    conf = digits.config(
        spark, digits.solver("cos", max_iter=1000000), clusterSize="2", maxRestarts="0"
    )
    killed = []

    def kill_one():
        if wait_until(lambda: len(set(trainers()) - earlier) == 2, 60):
            time.sleep(1)
            killed.append((min(set(trainers()) - earlier), time.monotonic()))
            os.kill(killed[0][0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(UnavailableError, match=r"rank \d on host \S+ (went away|failed)") as raised:
        train(spark, conf)
    reported = time.monotonic()
    killer.join()
    assert raised.value.code == "unavailable"
    assert raised.value.lost
    assert f"rank {raised.value.rank} on host {raised.value.host}" in str(raised.value)
    assert reported - killed[0][1] < 30
    assert no_trainer_left(earlier)


def test_a_training_leaves_no_process_behind(spark, digits, earlier):
    train(spark, digits.config(spark, digits.solver("cos", max_iter=5), clusterSize="2"))
    assert no_trainer_left(earlier)


def test_more_ranks_than_slots_fail_in_seconds(spark, digits):
    conf = digits.config(spark, digits.solver("cos", max_iter=5), clusterSize="5")
    train(spark, digits.config(spark, digits.solver("cos", max_iter=1)))  # starts the executors
    start = time.monotonic()
    with pytest.raises(HearthError, match=r"5 ranks need 5 task slots .* but the cluster has 2"):
        train(spark, conf)
    assert time.monotonic() - start < 30


def test_dynamic_allocation_is_refused(spark, digits, monkeypatch):
    from hearth.spark import preflight

    class Session:
        conf = {"spark.dynamicAllocation.enabled": "true"}

    with pytest.raises(HearthError, match=r"spark\.dynamicAllocation\.enabled=false"):
        preflight.check(Session(), 2)


def test_a_missing_column_is_found_before_anything_starts(spark, digits):
    conf = digits.config(spark, digits.solver("cos", max_iter=5))
    rows = spark.read.parquet(digits.table("raw", "train")).drop("label")
    with pytest.raises(FlagError, match="no column 'label'"):
        train(spark, conf, rows)


def test_the_sessions_settings_are_restored(spark):
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(key)
    with session_conf(spark, {key: "17"}):
        assert spark.conf.get(key) == "17"
    assert spark.conf.get(key) == before


def test_an_existing_session_keeps_its_home(spark, tmp_path, monkeypatch):
    home = os.environ["SPARK_HOME"]
    monkeypatch.setenv("SPARK_HOME", home)  # so that monkeypatch restores it
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    found = spark_session.start("again", executors=2)
    assert found.sparkContext is spark.sparkContext
    assert os.environ["SPARK_HOME"] == home  # the folder with its executors' logs
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("listener", ["coordinator", "mesh"])
def test_a_fixed_port_in_use_is_named(spark, digits, listener):
    conf = digits.config(spark, digits.solver(max_iter=5), clusterSize="2")
    key = f"spark.hearth.{listener}.port"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        spark.conf.set(key, f"{port}-{port}")
        try:
            with pytest.raises(
                (HearthError, OSError), match=rf"no port of {key} \({port}-{port}\) is free"
            ):
                train(spark, conf)
        finally:
            spark.conf.unset(key)
