"""Settings that concurrent jobs of a Spark session share."""

import logging
import threading
from contextlib import ExitStack

import pytest

from hearth import HearthError
from hearth.spark.session_conf import session_conf

KEY, OTHER = "spark.sql.shuffle.partitions", "spark.sql.leafNodeDefaultParallelism"


class Settings(dict):
    def set(self, key, value):
        if value == "unheard of":
            raise ValueError(value)
        self[key] = value

    def unset(self, key):
        del self[key]


class Session:
    def __init__(self):
        self.conf = Settings({KEY: "200"})


def test_settings_stay_until_the_last_job_that_needs_them_has_ended():
    spark = Session()
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(session_conf(spark, {KEY: "2", OTHER: "4"}))
        second.enter_context(session_conf(spark, {KEY: "2"}))
        first.close()
        assert spark.conf == {KEY: "2"}
        second.close()
        assert spark.conf == {KEY: "200"}


def test_a_job_that_needs_another_value_waits_and_logs_it(caplog):
    spark, seen, waits = Session(), [], threading.Event()

    def second():
        with session_conf(spark, {KEY: "3", OTHER: "4"}):
            seen.append(dict(spark.conf))

    class Ear(logging.Handler):
        def emit(self, record):
            waits.set()

    ear = Ear()
    logging.getLogger("hearth.spark.session_conf").addHandler(ear)
    try:
        with session_conf(spark, {KEY: "2"}):
            thread = threading.Thread(target=second, daemon=True)
            thread.start()
            assert waits.wait(60)
            assert (seen, spark.conf) == ([], {KEY: "2"})
        thread.join(60)
    finally:
        logging.getLogger("hearth.spark.session_conf").removeHandler(ear)
    assert f"which needs {{'{KEY}': '2'}}" in caplog.text
    assert (seen, spark.conf) == ([{KEY: "3", OTHER: "4"}], {KEY: "200"})


def test_sessions_do_not_wait_for_each_other():
    one, two = Session(), Session()
    with session_conf(one, {KEY: "2"}), session_conf(two, {KEY: "3"}):
        assert (one.conf[KEY], two.conf[KEY]) == ("2", "3")


def test_a_refused_setting_leaves_no_other_behind():
    spark = Session()
    with (
        pytest.raises(ValueError, match="unheard of"),
        session_conf(spark, {KEY: "2", OTHER: "unheard of"}),
    ):
        pass
    assert spark.conf == {KEY: "200"}
    with session_conf(spark, {KEY: "3"}):
        assert spark.conf == {KEY: "3"}


def test_an_ended_session_hides_no_error_and_blocks_no_job(monkeypatch):
    spark = Session()

    def gone(*_):
        raise ConnectionError("the session is gone")

    with pytest.raises(ValueError, match="what went wrong"), session_conf(spark, {KEY: "2"}):
        monkeypatch.setattr(spark.conf, "set", gone)
        monkeypatch.setattr(spark.conf, "unset", gone)
        raise ValueError("what went wrong")
    monkeypatch.undo()
    with session_conf(spark, {KEY: "3"}):
        assert spark.conf[KEY] == "3"


def test_a_thread_does_not_wait_for_itself():
    spark = Session()
    with session_conf(spark, {KEY: "2"}), session_conf(spark, {KEY: "2", OTHER: "4"}):
        with (
            pytest.raises(HearthError, match=f"needs {KEY}=3, but the outer job needs 2"),
            session_conf(spark, {KEY: "3"}),
        ):
            pass
        assert spark.conf == {KEY: "2", OTHER: "4"}
    assert spark.conf == {KEY: "200"}
