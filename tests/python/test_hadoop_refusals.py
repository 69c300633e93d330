"""Hadoop's errors as one line, and the file system that a flag's file is on."""

from __future__ import annotations

from pathlib import Path

import pytest

from hearth.caffeonspark.flag_files import FlagFiles
from hearth.caffeonspark.flags import FlagError
from hearth.files.hadoop_errors import refusal
from hearth.spark.failures import memory_kill, reports_loss

_DENIED = (
    "org.apache.hadoop.security.AccessControlException: Permission denied: user=me, access=WRITE, "
    'inode="/theirs":hdfs:supergroup:drwx------\n\tat org.apache.hadoop.hdfs.server'
)
_SAFE = (
    "org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.hdfs.server.namenode."
    "SafeModeException): Cannot create file/x. Name node is in safe mode."
)
_TOKEN = (
    "org.apache.hadoop.security.token.SecretManager$InvalidToken: token (token for me: "
    "HDFS_DELEGATION_TOKEN owner=me) can't be found in cache"
)
_NO_TICKET = (
    "java.io.IOException: DestHost:destPort nn:8020 , LocalHost:localPort a/10.0.0.1:0. Failed on "
    "local exception: java.io.IOException: org.apache.hadoop.security.AccessControlException: "
    "Client cannot authenticate via:[TOKEN, KERBEROS]"
)
_QUOTA = "put: The NameSpace quota (directories and files) of /x is exceeded"
_KILLED = (
    "ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: Container "
    "killed by YARN for exceeding physical memory limits. 1.5 GB of 1.4 GB physical memory used. "
    "Consider boosting spark.executor.memoryOverhead."
)


@pytest.mark.parametrize(
    ("output", "said", "code"),
    [
        (_DENIED, "not allowed (Permission denied: user=me, access=WRITE", "permission_denied"),
        (_SAFE, "hdfs dfsadmin -safemode wait", "unavailable"),
        (_TOKEN, "max-lifetime", "permission_denied"),
        (_NO_TICKET, "requires Kerberos, and there is no valid ticket: kinit", "permission_denied"),
        (_QUOTA, "quota", "resource_exhausted"),
        ("java.io.FileNotFoundException: File does not exist: /x", "no such file", "not_found"),
        ("ls: `/safemode/quota': No such file or directory", "no such file", "not_found"),
        (
            "java.io.IOException: Incomplete HDFS URI, no host: hdfs:///x",
            "CONF_DIR",
            "invalid_argument",
        ),
        (
            "java.io.IOException: Something new\n\tat somewhere",
            "(as user me): Something new",
            "internal",
        ),
        ("", "no reason given", "internal"),
    ],
)
def test_a_refusal_is_one_line_with_a_code(output, said, code):
    error = refusal("-model hdfs://h/x", output, "me")
    line = str(error)
    assert line.startswith("-model hdfs://h/x (as user me): ")
    assert said in line
    assert "\n" not in line and "Exception" not in line
    assert error.code == code


def test_yarns_message_of_a_memory_kill():
    assert memory_kill(_KILLED) == (
        "killed by YARN for exceeding physical memory limits. 1.5 GB of 1.4 GB physical memory "
        "used."
    )
    assert reports_loss(_KILLED)
    assert memory_kill("Container marked as failed. Exit status: 137") is None


class Hdfs:
    """A fake of Spark's file access that records calls."""

    def __init__(self):
        self.asked: list[str] = []

    def knows(self, name: str) -> bool:
        return name == "s3a"

    def qualified(self, path: str) -> str:
        return path if ":" in path else f"hdfs://h/user/me/{path}"

    def check_readable(self, flag: str, uri: str) -> None:
        self.asked.append(f"{flag} is read: {uri}")

    def check_writable(self, flag: str, uri: str) -> None:
        self.asked.append(f"{flag} is written: {uri}")


def test_a_path_without_scheme_uses_the_default_file_system(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    local, hdfs = FlagFiles(Hdfs(), "file:///"), FlagFiles(Hdfs(), "hdfs://h")
    assert local.output("-model", "x") == str(tmp_path / "x")
    assert hdfs.output("-model", "x") == "hdfs://h/user/me/x"
    assert hdfs.output("-model", "file:x") == str(tmp_path / "x")
    assert local.output("-model", "s3a://bucket/x") == "s3a://bucket/x"
    assert hdfs.input("-weights", "") == ""


def test_remote_files_are_checked():
    files = Hdfs()
    flag_files = FlagFiles(files, "file:///")
    flag_files.input("-weights", "hdfs://h/w")
    flag_files.output("-model", "hdfs://h/m")
    assert files.asked == ["-weights is read: hdfs://h/w", "-model is written: hdfs://h/m"]


def test_a_local_file_must_exist(tmp_path):
    Path(tmp_path / "there").touch()
    flag_files = FlagFiles(None, "file:///")
    assert flag_files.input("-weights", f"file:{tmp_path}/there") == str(tmp_path / "there")
    with pytest.raises(FlagError, match=r"-weights \S*gone: there is no such file"):
        flag_files.input("-weights", f"{tmp_path}/gone")
