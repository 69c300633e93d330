"""The core's files on a real HDFS, through both of its clients."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import hadoop_jars
import pyarrow as pa
import pytest
from hadoop_libhdfs import libhdfs

from hearth.files.tfrecord_files import new_file
from hearth.native import _core

_LIMIT_S = 240.0


def conformance(uri: str, environment: dict[str, str]) -> str:
    """Runs the conformance suite of hearth/storage on a folder; returns its output."""
    native = Path(_core.__file__).parent
    program = native.parent / "hearth" / "storage" / "hearth_storage_test"
    done = subprocess.run(
        [str(program), "--gtest_filter=All/FileSystemTest.*/Real"],
        env={**os.environ, **environment, "HEARTH_TEST_FILES_URI": uri},
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_webhdfs_passes_the_conformance_tests(hadoop):
    output = conformance(f"hdfs:///user/{hadoop.user}/web", {"HEARTH_HDFS": "webhdfs"})
    assert "[  PASSED  ] 14 tests." in output


def test_libhdfs_passes_the_conformance_tests(hadoop):
    library = libhdfs(Path(hadoop.environment()["JAVA_HOME"]))
    if library is None:
        pytest.skip("libhdfs is built of a crate, which cargo fetches, with a JDK's headers")
    environment = {
        "HEARTH_LIBHDFS": str(library),
        "CLASSPATH": f"{os.environ['HADOOP_CONF_DIR']}:{hadoop_jars.jars()}/*",
        "LIBHDFS_OPTS": "-Xmx128m -XX:TieredStopAtLevel=1",
    }
    output = conformance(f"{hadoop.uri}/user/{hadoop.user}/jvm", environment)
    assert "[  PASSED  ] 14 tests." in output


def in_process(program: str, **environment: str) -> str:
    """Output of a Python program that uses the core's bindings as `core`."""
    done = subprocess.run(
        [sys.executable, "-c", f"from hearth.native import _core as core\n{program}"],
        env={**os.environ, "HEARTH_HDFS": "webhdfs", **environment},
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
    )
    return done.stdout + done.stderr


def test_a_permission_error_names_path_and_user(hadoop):
    said = in_process(
        f"core.write_file('hdfs:///user/{hadoop.user}/theirs', b'x')",
        HADOOP_USER_NAME="another",
    )
    last = said.strip().splitlines()[-1]
    assert last.startswith("hearth.errors.PermissionDeniedError: cannot write hdfs:///user/"), said
    assert "as user another" in last and "permission denied" in last


def test_without_a_configuration_the_variable_is_named(hadoop):
    said = in_process("core.stat_file('hdfs:///a')", HADOOP_CONF_DIR="")
    assert "HADOOP_CONF_DIR is not set" in said.strip().splitlines()[-1]


def test_records_over_a_quota_leave_no_file(hadoop, monkeypatch):
    monkeypatch.setenv("HEARTH_HDFS", "webhdfs")
    hadoop.web("PUT", "/narrow", "MKDIRS", permission="777")
    hadoop.run("hdfs", "dfsadmin", "-setSpaceQuota", "1m", "/narrow", user="hdfs")
    batch = pa.record_batch({"x": list(range(1000))})
    said = pytest.raises(OSError, match=r"hdfs://.*/narrow/\.part-r-00000.*quota")
    with said, new_file(f"{hadoop.uri}/narrow", 0, 1) as file:
        file.write(batch)
    assert _core.list_folder(f"{hadoop.uri}/narrow") == []


def test_a_file_is_written_over_a_restart_of_the_data_node(hadoop, monkeypatch):
    monkeypatch.setenv("HEARTH_HDFS", "webhdfs")
    uri = f"{hadoop.uri}/user/{hadoop.user}/survivor"
    _core.write_file(uri, b"old")
    file = _core.OutputFile(uri)
    file.append(b"new" * 1_000_000)
    hadoop.kill_daemon("datanode")
    failures: list[BaseException] = []

    def commit() -> None:
        try:
            file.commit()
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=commit)
    writer.start()
    hadoop.start_daemon("datanode")
    writer.join(_LIMIT_S)
    assert not writer.is_alive() and not failures, failures
    assert _core.read_file(uri) == b"new" * 1_000_000
