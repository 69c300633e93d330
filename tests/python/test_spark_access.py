"""Access to Spark, and the Python that executors run; without Spark."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from hearth import HearthError
from hearth.spark.access import ClassicSpark, spark_access
from hearth.spark.driver_python import use_driver_python
from hearth.spark.failures import wrong_python


def session(master, jsc="a context"):
    context = SimpleNamespace(master=master, pythonExec="python3", _jsc=jsc)
    return SimpleNamespace(sparkContext=context, _jsc=jsc, createDataFrame=None)


@pytest.mark.parametrize("given", [None, "a master"])
def test_other_objects_are_refused_as_a_session(given):
    with pytest.raises(TypeError, match=rf"not {given!r}: create one by .*getOrCreate\(\)"):
        spark_access(given)


def test_a_session_that_has_ended_is_refused():
    with pytest.raises(HearthError, match="session has ended: start a new one"):
        ClassicSpark(session("local[2]", jsc=None))


@pytest.mark.parametrize(
    ("master", "named", "runs"),
    [
        ("local[2]", None, sys.executable),
        ("local-cluster[2,1,1024]", None, sys.executable),
        ("local[2]", "/usr/bin/python3", "python3"),  # Spark reads PYSPARK_PYTHON itself
        ("yarn", None, "python3"),
        ("spark://head:7077", None, "python3"),
    ],
)
def test_executors_of_this_machine_run_the_drivers_python(monkeypatch, master, named, runs):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if named is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", named)
    spark = session(master)
    use_driver_python(spark)
    assert spark.sparkContext.pythonExec == runs


def test_an_error_about_it_names_both_interpreters_and_the_setting(monkeypatch):
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_active_spark_context", SimpleNamespace(pythonExec="py9"))
    line = wrong_python("ModuleNotFoundError: No module named 'hearth'")
    assert f"executors' Python py9 has no hearth, but the driver's {sys.executable} has" in line
    assert "PYSPARK_PYTHON" in line and "spark.pyspark.python" in line
