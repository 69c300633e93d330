"""Tokens of Spark's JVM: lent to the driver's process and to tasks, and newer ones after them."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hearth import HearthError
from hearth.files import borrowed_tokens, hadoop_tokens
from hearth.files.borrowed_tokens import borrowed
from hearth.files.hadoop_tokens import VARIABLE, TokenLoan, lend_tokens

LIMIT_S = 20.0


class Jvm:
    """Hadoop's classes, as tokens are lent by them. HDFS is a folder of this host."""

    def __init__(self, home: Path, secure: bool = True, keytab: bool = True):
        self.held = [("HDFS_DELEGATION_TOKEN", "first"), ("YARN_AM_RM_TOKEN", "master")]
        self.home, self.published, self.over = home, [], False
        login = SimpleNamespace(isFromKeytab=lambda: keytab)
        every = SimpleNamespace(toArray=self.tokens)
        held = SimpleNamespace(getAllTokens=lambda: every)
        current = SimpleNamespace(getCredentials=lambda: held)
        users = SimpleNamespace(
            isSecurityEnabled=lambda: secure,
            getLoginUser=lambda: login,
            getCurrentUser=lambda: current,
        )
        security = SimpleNamespace(UserGroupInformation=users, Credentials=Credentials)
        permission = SimpleNamespace(FsPermission=lambda mode: int(mode, 8))
        hdfs = SimpleNamespace(get=lambda conf: self)
        fs = SimpleNamespace(Path=self.path, FileSystem=hdfs, permission=permission)
        hadoop = SimpleNamespace(security=security, fs=fs)
        self.org = SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop))
        io = SimpleNamespace(ByteArrayOutputStream=Stream, DataOutputStream=lambda stream: stream)
        self.java = SimpleNamespace(io=io)

    def session(self, application: str) -> SimpleNamespace:
        scala = SimpleNamespace(isStopped=lambda: self.over)
        java = SimpleNamespace(hadoopConfiguration=lambda: None, sc=lambda: scala)
        context = SimpleNamespace(applicationId=application, _jsc=java)
        return SimpleNamespace(_jvm=self, _jsc=java, sparkContext=context)

    def tokens(self) -> list[SimpleNamespace]:
        ends = SimpleNamespace(getMaxDate=lambda: 1000 * (time.time() + 60))
        return [
            SimpleNamespace(
                getKind=lambda kind=kind: kind,
                getService=lambda: "nn",
                encodeToUrlString=lambda text=text: text,
                decodeIdentifier=lambda: ends,
            )
            for kind, text in self.held
        ]

    def path(self, parent: Any, name: str = "") -> Any:
        path = Path(str(parent).removeprefix("hdfs://nn")) / name
        return FolderOfHdfs(path, self)

    def getHomeDirectory(self) -> SimpleNamespace:
        return SimpleNamespace(toString=lambda: f"hdfs://nn{self.home}")


class FolderOfHdfs:
    """A path of Hadoop's, and its file system."""

    def __init__(self, path: Path, jvm: Jvm):
        self.path, self.getFileSystem = path, lambda conf: self
        self.exists = lambda other: other.path.exists()
        self.mkdirs = lambda folder, mode: folder.path.mkdir(parents=True, mode=mode)
        self.deleteOnExit = jvm.published.append
        self.create = lambda part, _: Stream(part.path)
        self.rename = lambda old, new: bool(old.path.rename(new.path))

    def __str__(self) -> str:
        return str(self.path)


class Stream:
    def __init__(self, path: Path | None = None):
        self.data, self.path = b"", path

    def write(self, data: bytearray) -> None:
        self.data += bytes(data)

    def toByteArray(self) -> bytes:
        return self.data

    def close(self) -> None:
        if self.path is not None:
            self.path.write_bytes(self.data)


class Credentials:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def addToken(self, _: str, token: Any) -> None:
        self.texts.append(token.encodeToUrlString())

    def writeTokenStorageToStream(self, stream: Stream) -> None:
        stream.write(bytearray(",".join(self.texts).encode()))


def wait(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def variable(monkeypatch):
    monkeypatch.setenv(VARIABLE, "")  # so that it is as before afterwards
    del os.environ[VARIABLE]
    monkeypatch.delenv("CONTAINER_ID", raising=False)
    monkeypatch.setattr(hadoop_tokens, "_lenders", {})
    monkeypatch.setattr(hadoop_tokens, "_LEAST_S", 0.05)
    monkeypatch.setattr(hadoop_tokens, "_LOOKS", 1000)


@pytest.fixture
def jvm(tmp_path):
    jvm = Jvm(tmp_path)
    yield jvm
    jvm.over = True


def test_a_keytabs_tokens_are_lent_to_this_user_alone(jvm):
    loan = lend_tokens(jvm.session("one"))
    assert base64.b64decode(loan.tokens) == b"first"  # and not the application master's
    assert loan.tokens not in repr(loan)
    file = Path(os.environ[VARIABLE])
    assert file.read_bytes() == b"first"
    assert (file.stat().st_mode | file.parent.stat().st_mode) & 0o077 == 0


def test_newer_tokens_reach_the_driver_a_running_task_and_the_next_one(jvm, monkeypatch):
    class Copies:
        def __init__(self, _: dict[str, str]):
            pass

        def names(self, folder: str) -> list[str]:
            folder = folder.removeprefix("hdfs://nn")
            return os.listdir(folder) if os.path.isdir(folder) else []

        def fetch(self, uri: str, path: str) -> None:
            Path(path).write_bytes(Path(uri.removeprefix("hdfs://nn")).read_bytes())

    monkeypatch.setattr(borrowed_tokens, "FarCopies", Copies)
    session = jvm.session("two")
    loan = lend_tokens(session)
    own = Path(os.environ[VARIABLE])
    with borrowed(loan):
        lent = Path(os.environ[VARIABLE])
        assert lent.read_bytes() == b"first" and lent != own
        for text in ("second", "third"):
            jvm.held[0] = ("HDFS_DELEGATION_TOKEN", text)
            wait(lambda text=text: lent.read_text() == own.read_text() == text)
            assert (lent.stat().st_mode | lent.parent.stat().st_mode) & 0o077 == 0
    assert os.environ[VARIABLE] == str(own) and not lent.parent.exists()
    folder = Path(loan.folder.removeprefix("hdfs://nn"))
    assert sorted(os.listdir(folder)) == ["1.tokens", "2.tokens"]
    assert folder.stat().st_mode & 0o077 == 0
    assert len(jvm.published) == 1  # Hadoop removes it with the JVM
    again = lend_tokens(session)
    assert (base64.b64decode(again.tokens), again.number) == (b"third", 2)


def test_the_next_application_of_a_process_lends_its_own(jvm, tmp_path):
    lend_tokens(jvm.session("three"))
    other = Jvm(tmp_path)
    other.held = [("HDFS_DELEGATION_TOKEN", "other")]
    lend_tokens(other.session("four"))
    assert Path(os.environ[VARIABLE]).read_bytes() == b"other"
    jvm.over = other.over = True
    wait(lambda: not hadoop_tokens._lenders)


def test_what_the_user_has_named_stays(jvm, monkeypatch):
    monkeypatch.setenv(VARIABLE, "/of/the/user")
    assert lend_tokens(jvm.session("five")) is not None
    assert os.environ[VARIABLE] == "/of/the/user"


def test_yarns_file_in_cluster_mode_gives_way_to_newer_ones(jvm, monkeypatch):
    monkeypatch.setenv(VARIABLE, "/of/yarn")
    monkeypatch.setenv("CONTAINER_ID", "container_1")
    lend_tokens(jvm.session("six"))
    assert Path(os.environ[VARIABLE]).read_bytes() == b"first"


def test_a_ticket_stays_the_drivers_and_tasks_get_tokens(tmp_path):
    assert lend_tokens(Jvm(tmp_path, keytab=False).session("seven")) is not None
    assert VARIABLE not in os.environ


def test_where_there_are_none_nothing_is_lent(jvm, tmp_path):
    assert lend_tokens(Jvm(tmp_path, secure=False).session("eight")) is None
    jvm.held = [("YARN_AM_RM_TOKEN", "master")]
    assert lend_tokens(jvm.session("nine")) is None
    assert lend_tokens(SimpleNamespace()) is None  # Spark Connect
    assert VARIABLE not in os.environ
    with borrowed(None):
        assert VARIABLE not in os.environ


def test_what_cannot_be_lent_is_one_line(jvm):
    jvm.java.io.ByteArrayOutputStream = lambda: 1 / 0
    with pytest.raises(HearthError, match="tokens of Spark's JVM cannot be handed on") as caught:
        lend_tokens(jvm.session("ten"))
    assert "\n" not in str(caught.value)


def test_newer_tokens_are_lent_also_where_hdfs_takes_no_file(jvm, caplog):
    session = jvm.session("eleven")
    lend_tokens(session)
    jvm.path = lambda *_: 1 / 0
    jvm.org.apache.hadoop.fs.Path = jvm.path
    jvm.held[0] = ("HDFS_DELEGATION_TOKEN", "second")
    wait(lambda: "cannot be handed on yet" in caplog.text)
    loan = lend_tokens(session)
    assert (base64.b64decode(loan.tokens), loan.number) == (b"second", 0)


def test_a_loan_survives_files_that_do_not_come(jvm, monkeypatch, capfd):
    class Copies:
        def __init__(self, _: dict[str, str]):
            pass

        def names(self, folder: str) -> list[str]:
            raise OSError("HDFS is away")

    monkeypatch.setattr(borrowed_tokens, "FarCopies", Copies)
    said = ""
    with borrowed(TokenLoan(base64.b64encode(b"first").decode(), "hdfs://nn/folder", 0, 0.02)):
        while "newer tokens are not here yet: HDFS is away" not in said:
            time.sleep(0.02)
            said += capfd.readouterr().err
        assert Path(os.environ[VARIABLE]).read_bytes() == b"first"
    assert VARIABLE not in os.environ
