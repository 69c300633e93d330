"""Checks of a session's settings before ranks start."""

import time
from types import SimpleNamespace

import pytest

from hearth import HearthError
from hearth.caffeonspark.flag_files import check_before_start
from hearth.spark import preflight
from hearth.spark.preflight import unused_cores


def _executor(cores: int, removed_ms: int | None = None) -> SimpleNamespace:
    """An executor in Spark's status store; `removed_ms`: when it was lost, since 1970."""
    date = SimpleNamespace(getTime=lambda: removed_ms)
    removal = SimpleNamespace(isDefined=lambda: removed_ms is not None, get=lambda: date)
    return SimpleNamespace(totalCores=lambda: cores, removeTime=lambda: removal)


class Session:
    """The part of a classic session that the checks use."""

    def __init__(self, cores: list[int], lost_s_ago: float | None = None, **conf: str):
        self.conf = {key.replace("_", "."): value for key, value in conf.items()}
        infos = [_executor(cores) for cores in cores]
        if lost_s_ago is not None:
            infos.append(_executor(0, removed_ms=int((time.time() - lost_s_ago) * 1000)))
        found = SimpleNamespace(size=lambda: len(infos), apply=lambda i: infos[i])
        store = SimpleNamespace(executorList=lambda active: found)
        context = SimpleNamespace(statusStore=lambda: store, startTime=lambda: 0)
        self._jsc = SimpleNamespace(sc=lambda: context)


def test_unused_cores_are_reported_with_the_setting():
    text = unused_cores(Session([0, 8, 8], spark_master="yarn", spark_task_cpus="2"))
    assert "executors have 8 cores, and a rank uses 2" in text
    assert "spark.task.cpus=8" in text and "\n" not in text


@pytest.mark.parametrize(
    ("cores", "conf"),
    [
        ([0, 4], {"spark_master": "yarn", "spark_task_cpus": "4"}),
        ([0], {"spark_master": "yarn"}),
        ([], {"spark_master": "yarn"}),
        ([8], {"spark_master": "local[8]"}),
    ],
)
def test_no_warning_if_all_cores_are_used(cores, conf):
    assert unused_cores(Session(cores, **conf)) is None


def test_dynamic_allocation_is_refused_before_spark_has_an_application():
    config = SimpleNamespace(is_training=True, is_test=False, is_feature=False)
    conf = {"spark.dynamicAllocation.enabled": "true"}
    with pytest.raises(HearthError, match=r"dynamicAllocation.enabled is true.*enabled=false"):
        check_before_start(config, SimpleNamespace(default="file:///"), conf.get)


def _slots_of(monkeypatch, counts: list[int]) -> None:
    left = iter(counts)
    monkeypatch.setattr("hearth.spark.slots.slots_now", lambda session, profile: next(left))
    monkeypatch.setattr("hearth.spark.slots.time.sleep", lambda s: None)


def test_a_recently_lost_executor_is_awaited(monkeypatch):
    _slots_of(monkeypatch, [2, 2, 3])
    lines: list[str] = []
    preflight.check(
        Session([1, 1], lost_s_ago=2.0, spark_master="spark://head:7077"), 3, lines.append
    )
    (line,) = lines
    assert line.startswith("waiting for executors: 2 of 3 slots (2 of 300 s)")


@pytest.mark.parametrize("said", ["300s", "10min"])
def test_the_first_executors_are_awaited_as_long_as_the_setting_says(monkeypatch, said):
    session = Session([], spark_master="spark://head:7077", spark_hearth_executorWait=said)
    begun = time.time() - 240  # the application started four minutes ago
    monkeypatch.setattr(session._jsc.sc(), "startTime", lambda: int(begun * 1000))
    _slots_of(monkeypatch, [0, 0, 2])
    lines: list[str] = []
    preflight.check(session, 2, lines.append)
    assert lines and lines[0].startswith("waiting for executors: 0 of 2 slots (240 of ")
    session.conf["spark.hearth.executorWait"] = "200s"
    _slots_of(monkeypatch, [0])
    with pytest.raises(HearthError, match=r"has 0 and got no more within 200 s of waiting for exe"):
        preflight.check(session, 2)


@pytest.mark.parametrize("lost_s_ago", [None, 301.0])
def test_no_wait_without_a_recent_loss(monkeypatch, lost_s_ago):
    _slots_of(monkeypatch, [2])
    with pytest.raises(HearthError, match="3 ranks need 3 task slots"):
        preflight.check(Session([1, 1], lost_s_ago, spark_master="spark://head:7077"), 3)
