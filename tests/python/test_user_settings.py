"""The user's Spark settings are kept and combined with those of Hearth's sessions."""

import pytest

from hearth.caffeonspark.command_line import split_spark
from hearth.spark import session
from hearth.spark.user_settings import joined_options, user_settings, with_users

DRIVER, EXECUTOR = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"


@pytest.fixture
def defaults(tmp_path, monkeypatch):
    """Returns a function that writes spark-defaults.conf."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    return (tmp_path / "spark-defaults.conf").write_text


def test_settings_are_read_as_spark_reads_them(defaults, monkeypatch):
    defaults(
        f"# none\n\nspark.a  1 2\nspark.b=3=4\n  spark.c : 5 \n{DRIVER} -Dx=y -Dz\nspark.d first\n"
    )
    arguments = f'--master yarn --conf spark.d=last -c "{EXECUTOR}=-Da -Db" pyspark-shell'
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    assert user_settings() == {
        "spark.a": "1 2", "spark.b": "3=4", "spark.c": "5", DRIVER: "-Dx=y -Dz",
        "spark.d": "last", EXECUTOR: "-Da -Db",
    }  # fmt: skip


def test_without_a_file_there_are_no_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "gone"))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--driver-java-options -Da pyspark-shell")
    assert user_settings() == {DRIVER: "-Da"}


def test_jvm_options_are_joined_and_other_settings_are_the_users():
    ours = {DRIVER: "-Dours -XX:+UseSerialGC", "spark.a": "ours", "spark.b": "ours"}
    user = {DRIVER: "-Dtheirs", "spark.a": "theirs", "spark.c": "theirs"}
    assert with_users(ours, user) == {
        DRIVER: "-Dours -XX:+UseSerialGC -Dtheirs", "spark.a": "theirs", "spark.b": "ours",
    }  # fmt: skip


def test_a_jvm_gets_one_collector():
    ours = {EXECUTOR: "-Da -XX:+UseSerialGC -XX:-UsePerfData"}
    user = {EXECUTOR: "-XX:+UseZGC -Db"}
    assert joined_options(ours, user) == {EXECUTOR: "-Da -XX:-UsePerfData -XX:+UseZGC -Db"}


class Stop(Exception):
    pass


@pytest.mark.parametrize("master", [None, "spark://host:7077"])
def test_a_session_adds_its_options_to_the_users(defaults, monkeypatch, master):
    defaults(f"{DRIVER} -Dtheirs\n{EXECUTOR} -Dtheirs2\nspark.ui.showConsoleProgress true\n")
    launched = {}

    def launch(conf, folders=()):
        launched.update(conf)
        raise Stop

    monkeypatch.setattr(session.java_start, "launch", launch)
    monkeypatch.setattr(session.java_start, "is_running", lambda: True)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    conf = {"spark.task.cpus": "7", "spark.x": "y"}
    with pytest.raises(Stop):
        session.start("test", master=master, conf=conf)
    assert launched[DRIVER].startswith("-Dlog4j2.configurationFile=")
    assert launched[DRIVER].endswith(" -Dtheirs")
    assert launched["spark.ui.showConsoleProgress"] == "true"
    assert launched["spark.task.cpus"] == "7" and launched["spark.x"] == "y"
    own = master is None
    assert launched.get(EXECUTOR, "").endswith("-Dtheirs2") == own
    assert launched.get("spark.ui.enabled") == ("false" if own else None)


def test_the_command_line_takes_sparks_settings():
    words = ["-train", "--conf", "spark.a=b=c", "--master", "yarn", "--conf=spark.d=", "-conf", "x"]
    assert split_spark(words) == (
        "yarn",
        {"spark.a": "b=c", "spark.d": ""},
        ["-train", "-conf", "x"],
    )
    assert split_spark(["-train", "--conf", "solver"])[1:] == ({}, ["-conf", "solver", "-train"])
