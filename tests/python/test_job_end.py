"""Spark jobs that are ended before Spark has planned them."""

import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from hearth.caffe_jobs import launch


class Planning:
    """A fake of Spark with slow planning: an action cancelled while planned still starts."""

    def __init__(self):
        self.begun, self.cancelled = threading.Event(), threading.Event()

    def conf(self, key, default):
        return default

    def coordinator_hosts(self):
        return "127.0.0.1", "127.0.0.1"

    def thread(self, target):
        return threading.Thread(target=target)

    def tag(self, name):
        pass

    def cancel(self, name):
        if self.begun.is_set():
            self.cancelled.set()

    def act(self):
        time.sleep(0.5)
        self.begun.set()
        assert self.cancelled.wait(60)


def interrupted(*_):
    raise KeyboardInterrupt


def test_ctrl_c_ends_a_training_that_spark_still_plans(monkeypatch):
    spark = Planning()
    monkeypatch.setattr(launch, "spark_access", lambda _: spark)
    monkeypatch.setattr(launch, "_JOB_END_WAIT_S", 0.1)
    monkeypatch.setattr(launch._Attempt, "_act", lambda *_: spark.act())
    monkeypatch.setattr(launch._Attempt, "_watch", interrupted)
    plan = launch.Plan(1, {})
    with pytest.raises(KeyboardInterrupt):
        launch._Attempt(SimpleNamespace(conf={}), plan, launch.Rows(None, {}), 0).run(print)
    assert spark.cancelled.is_set()


# Runs in a separate process, because the tests' process may have a JVM.
AFTER_A_KILL = """
from types import SimpleNamespace
from pyspark import SparkContext
from pyspark.sql import SparkSession
from hearth.spark import java_start

context = SparkContext._active_spark_context = SimpleNamespace(_jsc=object())
SparkSession._instantiatedSession = SimpleNamespace(_sc=context)
java_start.kill()
assert SparkContext._active_spark_context is None
assert SparkSession._should_update_active_session()
"""


def test_a_start_after_an_interrupted_one_does_not_find_its_context():
    subprocess.run([sys.executable, "-c", AFTER_A_KILL], check=True, timeout=60)
