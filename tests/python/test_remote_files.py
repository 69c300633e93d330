"""A rank's remote files, and the driver's small files, with fakes of Hadoop."""

from __future__ import annotations

import json
import shutil
import traceback
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hearth import HearthError
from hearth.caffe_jobs import remote_files
from hearth.caffe_jobs.remote_files import RemoteFiles, RemotePlan
from hearth.files.hadoop_errors import refusal
from hearth.files.hadoop_files import HadoopFiles
from hearth.files.hadoop_shell import _literal, hadoop_user
from hearth.files.library_files import LibraryFiles
from hearth.files.uri import absolute_uri

_FOLDER = "hdfs://h/models"


class Shell:
    """Copies to and from a local folder that stands for hdfs://h."""

    def __init__(self, root: Path):
        self._root = root
        self.refusal = ""

    def _path(self, uri: str) -> Path:
        return self._root / uri.removeprefix("hdfs://h/")

    def fetch(self, uri: str, path: str) -> None:
        shutil.copyfile(self._path(uri), path)

    def names(self, folder: str) -> list[str]:
        return sorted(path.name for path in self._path(folder).iterdir())

    def store(self, paths: list[str], folder: str) -> None:
        if self.refusal:
            raise HearthError(self.refusal)
        for path in paths:
            shutil.copy(path, self._path(folder))


@pytest.fixture
def remote(tmp_path, monkeypatch):
    """RemoteFiles of rank 0 in its second generation; `root` contains the files of hdfs://h."""
    root = tmp_path / "hdfs"
    (root / "models").mkdir(parents=True)
    shell = Shell(root)
    monkeypatch.setattr(remote_files, "RemoteCopies", lambda settings, libraries: shell)
    monkeypatch.setattr(remote_files, "spill_folder", lambda: str(tmp_path))
    job = {"rank": 0, "host": "here", "generation": 1, "run": "r", "model": f"{_FOLDER}/m"}
    with closing(RemoteFiles(job, RemotePlan({}, "m"))) as files:
        yield SimpleNamespace(files=files, root=root / "models", shell=shell, tmp=tmp_path)


def seal(root: Path, iteration: int, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (root / f"m_iter_{iteration}.hearth.json").write_text(text)


def whole(root: Path, iteration: int) -> None:
    names = {"model": f"m_iter_{iteration}.caffemodel", "state": f"m_iter_{iteration}.solverstate"}
    for name in names.values():
        (root / name).write_text(name)
    seal(root, iteration, {"run": "r", **{key: {"file": name} for key, name in names.items()}})


def fetched(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in tmp_path.rglob("hearth-files-*/out/*"))


@pytest.mark.parametrize(
    "name", ["../../../escaped", "/tmp/hearth-escaped", "..", "", 7, None], ids=repr
)
def test_a_seal_cannot_name_files_outside_its_folder(remote, name, capfd):
    whole(remote.root, 10)
    (remote.root.parent.parent / "escaped").unlink(missing_ok=True)
    seal(remote.root, 20, {"run": "r", "model": {"file": name}, "state": {"file": name}})
    remote.files.local_job()
    assert fetched(remote.tmp) == [f"m_iter_10.{end}" for end in ("caffemodel", "hearth.json")] + [
        "m_iter_10.solverstate"
    ]
    assert "which is not a file in its folder" in capfd.readouterr().err


def test_a_fetched_snapshot_stays_until_the_trainer_has_read_it(remote):
    whole(remote.root, 10)
    remote.files.local_job()
    out = next(remote.tmp.glob("hearth-files-*/out"))
    (remote.root / "m_iter_10.hearth.json").unlink()
    remote.files._take_snapshots()
    assert len(list(out.iterdir())) == 3
    assert not (remote.root / "m_iter_10.hearth.json").exists()  # it is not stored again
    # The run repeats an epoch, and reaches the same iteration again with other rows.
    (out / "m_iter_10.hearth.json").unlink()
    whole(out, 10)
    remote.files._take_snapshots()
    assert list(out.iterdir()) == []
    assert (remote.root / "m_iter_10.hearth.json").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run": "r"}', "[" * 100_000], ids=range(5))
def test_a_corrupt_seal_falls_back_to_the_previous_snapshot(remote, text):
    whole(remote.root, 10)
    seal(remote.root, 20, text)
    remote.files.local_job()
    assert "m_iter_10.hearth.json" in fetched(remote.tmp)
    assert "m_iter_20.hearth.json" not in fetched(remote.tmp)


def test_only_permanent_errors_end_retries(monkeypatch):
    asked = []

    def refused(error: Exception) -> None:
        asked.append(error)
        if len(asked) < 3:
            raise error

    monkeypatch.setattr(remote_files, "_RETRY_S", 0.0)
    deadline = remote_files.time.monotonic() + 1000
    busy = refusal("hdfs://h/token/quota cannot be written", "java.io.IOException: busy", "me")
    remote_files._retrying(lambda: refused(busy), deadline)
    assert len(asked) == 3
    asked.clear()
    full = refusal("hdfs://h/a cannot be written", "x.NSQuotaExceededException: full", "me")
    with pytest.raises(HearthError, match="quota"):
        remote_files._retrying(lambda: refused(full), deadline)
    assert len(asked) == 1


@pytest.mark.parametrize("scheme", ["ftp", "foo"])
def test_no_traceback_has_a_password(scheme):
    uri = f"{scheme}://user:sesame@host.invalid/a"
    with pytest.raises(HearthError) as raised:
        LibraryFiles().check_readable("x", uri)
    assert "sesame" not in "".join(traceback.format_exception(raised.value))


def test_no_log_line_has_a_password():
    cause = "java.io.IOException: s3a://key:sesame@bucket"
    line = str(refusal("s3a://key:sesame@bucket/x", cause, "me"))
    assert "sesame" not in line and "s3a://***@bucket/x" in line
    line = str(refusal("s3a://key:open/sesame@bucket/x", f"Cannot parse {cause}", "me"))
    assert "sesame" not in line and "s3a://***@bucket/x" in line
    assert "hdfs://h:8020/a@b" in str(refusal("hdfs://h:8020/a@b", "gone", "me"))


def test_glob_characters_in_a_name_are_literal():
    assert _literal(r"hdfs://h/a[1]*\b") == r"hdfs://h/a\[1\]\*\\b"


class System:
    """Hadoop's FileSystem in memory; renames of files named `stuck` return False."""

    def __init__(self, files: dict[str, bytes], stuck: str = ""):
        self.files, self.stuck = files, stuck

    def exists(self, path: Any) -> bool:
        return path.name in self.files

    def create(self, path: Any, overwrite: bool) -> Any:
        def write(data: bytearray) -> None:
            self.files[path.name] = bytes(data)

        return SimpleNamespace(write=write, close=lambda: None)

    def rename(self, path: Any, to: Any) -> bool:
        if (self.stuck and path.name.endswith(self.stuck)) or to.name in self.files:
            return False
        self.files[to.name] = self.files.pop(path.name)
        return True

    def delete(self, path: Any, recursive: bool) -> bool:
        return self.files.pop(path.name, None) is not None


class JavaPath:
    def __init__(self, system: System, name: str):
        self.system, self.name = system, name

    def getParent(self) -> str:
        return ""

    def getFileSystem(self, configuration: Any) -> System:
        return self.system

    def toString(self) -> str:
        return self.name


def files_on(system: System) -> HadoopFiles:
    hadoop = SimpleNamespace(
        fs=SimpleNamespace(Path=lambda *parts: JavaPath(system, parts[-1])),
        security=SimpleNamespace(
            UserGroupInformation=SimpleNamespace(
                getCurrentUser=lambda: SimpleNamespace(getShortUserName=lambda: "me")
            )
        ),
    )
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop)))
    return HadoopFiles(jvm, None)


@pytest.mark.parametrize("stuck", [".part", "a"])
def test_a_failed_rename_keeps_the_old_file(stuck):
    system = System({"a": b"old"}, stuck)
    with pytest.raises(HearthError, match=r"a \(as user me\): .*cannot be renamed"):
        files_on(system).write("a", b"new")
    assert system.files == {"a": b"old"}


def test_a_new_file_replaces_the_old_one():
    system = System({"a": b"old"})
    files_on(system).write("a", b"new")
    assert system.files == {"a": b"new"}


def test_a_user_without_a_name_is_known_by_its_number(monkeypatch):
    """This happens in containers whose user has no entry in /etc/passwd."""
    import os

    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME", "HADOOP_USER_NAME", "SPARK_USER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 1000680000)
    assert hadoop_user() == "1000680000"
    assert absolute_uri("x", "hdfs://h", "/w") == "hdfs://h/user/1000680000/x"
