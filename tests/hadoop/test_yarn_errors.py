"""Mistakes and refusals on YARN and HDFS are reported in one line before anything starts."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest
from yarn_programs import caffe_on_spark, run_program

from hearth import HearthError
from hearth.caffeonspark.flag_files import FlagFiles, check_before_start
from hearth.caffeonspark.flags import FlagError
from hearth.files.hadoop_files import HadoopFiles
from hearth.files.hadoop_shell import HadoopShell
from hearth.files.uri import whole_uri


@pytest.fixture(scope="module")
def flag_files(spark) -> FlagFiles:
    return FlagFiles.of(spark)


def refused(act, *arguments: str) -> str:
    """The text of the error that the call raises; it must be one line."""
    with pytest.raises((HearthError, FlagError)) as caught:
        act(*arguments)
    text = str(caught.value)
    assert "\n" not in text and "Exception" not in text, text
    return text


def test_a_missing_file_is_reported(hadoop, flag_files):
    text = refused(flag_files.input, "-weights", "gone.caffemodel")
    assert f"-weights {hadoop.uri}/user/{hadoop.user}/gone.caffemodel" in text
    assert f"as user {hadoop.user}" in text and "no such file" in text


def test_a_folder_of_another_user_is_refused(hadoop, flag_files):
    hadoop.web("PUT", "/theirs", "MKDIRS", permission="700")
    text = refused(flag_files.output, "-model", "/theirs/lenet.caffemodel")
    assert f"-model {hadoop.uri}/theirs/lenet.caffemodel (as user {hadoop.user})" in text
    assert "Permission denied" in text and "a folder that you can write to" in text


def test_an_exceeded_quota_is_reported(hadoop, flag_files):
    hadoop.web("PUT", "/small", "MKDIRS", permission="777")
    hadoop.run("hdfs", "dfsadmin", "-setQuota", "1", "/small", user="hdfs")
    text = refused(flag_files.output, "-model", "/small/lenet.caffemodel")
    assert "quota" in text and "/small" in text


def test_safe_mode_is_reported(hadoop, flag_files):
    hadoop.run("hdfs", "dfsadmin", "-safemode", "enter", user="hdfs")
    try:
        text = refused(flag_files.output, "-model", "models/lenet.caffemodel")
    finally:
        hadoop.run("hdfs", "dfsadmin", "-safemode", "leave", user="hdfs")
    assert "safe mode" in text and "hdfs dfsadmin -safemode wait" in text


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("hdsf:///models/lenet.caffemodel", "no file system for this scheme"),
        ("hdfs://nowhere.invalid:8020/lenet.caffemodel", "cannot be reached"),
    ],
)
def test_an_invalid_model_uri_is_refused(flag_files, uri, said):
    assert said in refused(flag_files.output, "-model", uri)


def test_an_executor_raises_the_same_error(hadoop, spark, tmp_path):
    shell = HadoopShell({})
    text = refused(shell.fetch, f"{hadoop.uri}/gone", str(tmp_path / "gone"))
    assert "no such file" in text and f"as user {hadoop.user}" in text
    (tmp_path / "x").write_text("x")
    hadoop.web("PUT", "/theirs", "MKDIRS", permission="700")
    text = refused(shell.store, [str(tmp_path / "x")], f"{hadoop.uri}/theirs")
    assert "Permission denied" in text


def test_files_round_trip(hadoop, spark, tmp_path):
    files, folder = HadoopFiles.of(spark), f"{hadoop.uri}/user/{hadoop.user}/files"
    files.write(f"{folder}/words", b"first")
    files.write(f"{folder}/words", b"second")
    assert files.read(f"{folder}/words") == b"second"
    name = "a [name] of*stars"
    (tmp_path / "new").mkdir()
    (tmp_path / name).write_bytes(b"third")
    shell = HadoopShell({})
    shell.store([str(tmp_path / name)], folder)
    assert files.names(folder) == shell.names(folder) == [name, "words"]
    shell.fetch(f"{folder}/{name}", str(tmp_path / "new" / "copy"))
    assert (tmp_path / "new" / "copy").read_bytes() == b"third"
    files.delete(f"{folder}/words")
    assert not files.exists(f"{folder}/words")


def test_names_without_a_scheme_are_whole_uris(hadoop, spark):
    home = f"{hadoop.uri}/user/{hadoop.user}"
    assert whole_uri("records", spark) == f"{home}/records"
    assert whole_uri("/records", spark) == f"{hadoop.uri}/records"
    assert whole_uri(f"{home}/records", spark) == f"{home}/records"


def test_a_model_in_the_folder_of_a_container_is_refused(spark):
    config = SimpleNamespace(
        is_training=True, is_test=False, is_feature=False, model_path="file:lenet.caffemodel",
        output_path="", snapshot_model_file="", snapshot_state_file="",
    )  # fmt: skip
    mode = {"spark.submit.deployMode": "cluster"}
    files = HadoopFiles.of(spark)
    text = refused(lambda: check_before_start(config, files, mode.get))
    assert "file:lenet.caffemodel" in text and os.getcwd() in text and "hdfs:///" in text


def test_an_unset_yarn_configuration_is_reported(hadoop, digits):
    done = run_program(
        sys.executable, "-m", "hearth.caffeonspark", "--master", "yarn", "-train", "-conf",
        digits.solver(), folder=digits.folder, HADOOP_CONF_DIR="", YARN_CONF_DIR="",
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("caffeonspark: --master yarn: YARN's location")
    assert "HADOOP_CONF_DIR" in done.stderr


def test_missing_weights_are_reported_before_yarn_has_an_application(hadoop, digits):
    before = len((hadoop.cluster("apps")["apps"] or {"app": []})["app"])
    solver, weights = digits.solver(), "hdfs:///gone.caffemodel"
    done = caffe_on_spark("-train", "-conf", solver, "-weights", weights, folder=digits.folder)
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"caffeonspark: -weights {hadoop.uri}/gone.caffemodel"), done.stderr
    assert len((hadoop.cluster("apps")["apps"] or {"app": []})["app"]) == before
