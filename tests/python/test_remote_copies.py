"""Copies to HDFS: by the core, or by Hadoop's shell if the core cannot."""

from __future__ import annotations

import os

import pytest
from webhdfs_server import WebHdfs, refusal

from hearth import HearthError
from hearth.files import core_files, remote_copies
from hearth.files.remote_copies import RemoteCopies


class Shell:
    """A fake shell that records what it stores, or refuses to store."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.refusal = ""

    def store(self, paths: list[str], folder: str) -> None:
        if self.refusal:
            raise HearthError(self.refusal)
        self.stored += [f"{folder}/{os.path.basename(path)}" for path in paths]


@pytest.fixture
def shell(monkeypatch):
    stand_in = Shell()
    monkeypatch.setattr(remote_copies, "HadoopShell", lambda settings: stand_in)
    return stand_in


@pytest.fixture
def hdfs():
    with WebHdfs() as server:
        yield server


def test_files_round_trip_without_a_shell(hdfs, shell, tmp_path, monkeypatch):
    monkeypatch.setattr(core_files, "_COPY_BYTES", 1000)
    content = os.urandom(2500)
    (tmp_path / "a [b]").write_bytes(content)
    copies, folder = RemoteCopies({}), f"{hdfs.uri}/models"
    assert copies.names(folder) == []
    copies.store([str(tmp_path / "a [b]")], folder)
    assert hdfs.files == {"/models/a [b]": content}
    assert copies.names(folder) == ["a [b]"]
    copies.fetch(f"{folder}/a [b]", str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == content
    assert shell.stored == []


def test_a_file_that_cannot_be_read_here_is_not_begun_there(hdfs, shell, tmp_path):
    shell.refusal = "gone cannot be read"
    with pytest.raises(HearthError, match="gone cannot be read"):
        RemoteCopies({}).store([str(tmp_path / "gone")], f"{hdfs.uri}/models")
    assert hdfs.files == {}


def test_the_shell_is_used_where_the_core_is_refused(hdfs, shell, tmp_path, capfd):
    (tmp_path / "x").write_text("x")
    hdfs.before = lambda operation, path: (403, refusal("AccessControlException"))
    copies = RemoteCopies({})
    for _ in range(2):
        copies.store([str(tmp_path / "x")], f"{hdfs.uri}/models")
    assert shell.stored == [f"{hdfs.uri}/models/x"] * 2
    said = capfd.readouterr().err
    assert said.count("using Hadoop's shell instead") == 1 and "/models/x" in said


def test_if_both_are_refused_the_shells_error_is_raised_and_the_core_retries(hdfs, shell, tmp_path):
    (tmp_path / "x").write_text("x")
    copies, own = RemoteCopies({}), hdfs.before
    hdfs.before = lambda operation, path: (403, refusal("AccessControlException"))
    shell.refusal = "not allowed by Hadoop"
    with pytest.raises(HearthError, match="not allowed by Hadoop"):
        copies.store([str(tmp_path / "x")], f"{hdfs.uri}/models")
    hdfs.before = own
    copies.store([str(tmp_path / "x")], f"{hdfs.uri}/models")
    assert hdfs.files == {"/models/x": b"x"}


def test_other_file_systems_are_left_to_hadoop(shell, tmp_path):
    RemoteCopies({}).store([str(tmp_path / "x")], "s3a://bucket/models")
    assert shell.stored == ["s3a://bucket/models/x"]
