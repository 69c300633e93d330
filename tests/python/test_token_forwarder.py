"""Tokens of Spark's JVM: forwarded to the driver's process and to tasks, and later renewed."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlparse

import pytest

from hearth import HearthError
from hearth.files import forwarded_tokens
from hearth.files.forwarded_tokens import VARIABLE, ForwardedTokens, token_scope
from hearth.native import _core
from hearth.spark import token_forwarder
from hearth.spark.token_forwarder import forward_tokens

LIMIT_S = 60.0
HDFS, MASTER = "HDFS_DELEGATION_TOKEN", "YARN_AM_RM_TOKEN"


class Token:
    def __init__(self, kind: str = "", text: str = ""):
        self.getKind, self.text = lambda: kind, text
        self.toString = lambda: f"identifier of {text}"


class Credentials:
    """A fake of Hadoop's Credentials: tokens by alias."""

    def __init__(self) -> None:
        self.tokens: dict[str, Token] = {}
        self.getToken, self.addToken = self.tokens.get, self.tokens.__setitem__
        keys = SimpleNamespace(toArray=lambda: list(self.tokens))
        self.getTokenMap = lambda: SimpleNamespace(keySet=lambda: keys)
        self.getAllTokens = lambda: SimpleNamespace(toArray=lambda: list(self.tokens.values()))

    def file(self) -> bytes:
        return ",".join(token.text for token in self.tokens.values() if token.text).encode()

    def writeTokenStorageFile(self, path: FakePath, _: object) -> None:
        path.path.write_bytes(self.file())

    def writeTokenStorageToStream(self, stream: SimpleNamespace) -> None:
        stream.path.write_bytes(self.file())


class FakePath:
    """A fake of Hadoop's Path and of its file system. A path is local or in "hdfs://nn", which
    stands for a folder of this host.
    """

    def __init__(self, parent: object, name: str = ""):
        self.path = Path(urlparse(str(parent)).path) / name
        self.getFileSystem = lambda _: self
        self.makeQualified = lambda path: SimpleNamespace(toString=lambda: f"hdfs://nn{path.path}")
        self.exists = lambda other: other.path.exists()
        self.mkdirs = lambda folder, mode: folder.path.mkdir(parents=True, mode=mode)
        self.deleteOnExit = lambda folder: folder.path.with_name("deleted on exit").touch()
        self.create = lambda part, _: SimpleNamespace(path=part.path, close=lambda: None)
        self.rename = lambda old, new: not new.path.exists() and bool(old.path.rename(new.path))

    def __str__(self) -> str:
        return str(self.path)


class Jvm:
    """Fakes of the Hadoop classes that forwarding tokens uses."""

    def __init__(self, home: Path, secure: bool = True, keytab: bool = True):
        self.held, self.over = Credentials(), False
        self.give("first")
        self.held.addToken("", Token(MASTER, "master"))
        login = SimpleNamespace(isFromKeytab=lambda: keytab)
        current = SimpleNamespace(getCredentials=lambda: self.held, getShortUserName=lambda: "me")
        users = SimpleNamespace(
            isSecurityEnabled=lambda: secure,
            getLoginUser=lambda: login,
            getCurrentUser=lambda: current,
        )
        security = SimpleNamespace(UserGroupInformation=users, Credentials=Credentials)
        permission = SimpleNamespace(FsPermission=lambda mode: int(mode, 8))
        self.fs = SimpleNamespace(
            Path=lambda parent, name="": FakePath(
                home / parent if isinstance(parent, str) and ":" not in parent else parent, name
            ),
            permission=permission,
        )
        self.org = SimpleNamespace(
            apache=SimpleNamespace(hadoop=SimpleNamespace(security=security, fs=self.fs))
        )

    def give(self, text: str) -> None:
        """Simulates Spark's renewal of tokens."""
        self.held.addToken("nn", Token(HDFS, text))

    def session(self, application: str, **conf: str) -> SimpleNamespace:
        conf = {"spark.hearth.tokenLook": "0", **conf}
        settings = SimpleNamespace(
            get=lambda key, default=None: conf.get(key, default), getAll=conf.items
        )
        scala = SimpleNamespace(isStopped=lambda: self.over)
        java = SimpleNamespace(hadoopConfiguration=lambda: None, sc=lambda: scala)
        context = SimpleNamespace(applicationId=application, _jsc=java, getConf=lambda: settings)
        return SimpleNamespace(_jvm=self, _jsc=java, sparkContext=context, conf=settings)


def wait(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def here(uri: str) -> Path:
    return Path(urlparse(uri).path)


def list_here(uri: str, without_jvm: bool) -> list[SimpleNamespace]:
    assert without_jvm
    return [SimpleNamespace(uri=f"{uri}/{name}") for name in os.listdir(here(uri))]


def forwarded(**values: Any) -> ForwardedTokens:
    tokens = base64.b64encode(b"forwarded").decode()
    return ForwardedTokens(**{"tokens": tokens, "folder": "", "number": 0, "look_s": 0.02,
                        "forwarded_s": time.time(), **values})  # fmt: skip


@pytest.fixture(autouse=True)
def variable(monkeypatch):
    monkeypatch.setenv(VARIABLE, "")  # so that it is restored afterwards
    monkeypatch.setattr(token_forwarder, "_forwarders", {})
    monkeypatch.setattr(token_forwarder, "_LEAST_LOOK_S", 0.02)
    monkeypatch.setattr(_core, "list_folder", list_here)
    monkeypatch.setattr(_core, "read_file", lambda uri, without_jvm: here(uri).read_bytes())


@pytest.fixture
def jvm(tmp_path):
    jvm = Jvm(tmp_path)
    yield jvm
    jvm.over = True


def test_tokens_of_a_keytab_are_private_to_this_user(jvm):
    loan = forward_tokens(jvm.session("one"))
    assert base64.b64decode(loan.tokens) == b"first"  # not the application master's tokens
    assert loan.tokens not in repr(loan)
    file = Path(os.environ[VARIABLE])
    assert file.read_bytes() == b"first"
    assert (file.stat().st_mode | file.parent.stat().st_mode) & 0o077 == 0
    assert os.listdir(file.parent) == ["tokens"]


def test_newer_tokens_reach_the_driver_a_running_task_and_the_next_one(jvm):
    session = jvm.session("two")
    loan = forward_tokens(session)
    own, folder = Path(os.environ[VARIABLE]), here(loan.folder)
    with token_scope(loan):
        task = Path(os.environ[VARIABLE])
        assert task.read_bytes() == b"first" and task != own
        for text in ("HDTS second", "HDTS third"):
            jvm.give(text)
            wait(lambda text=text: task.read_text() == own.read_text() == text)
            assert (task.stat().st_mode | task.parent.stat().st_mode) & 0o077 == 0
    assert os.environ[VARIABLE] == str(own) and not task.parent.exists()
    assert sorted(os.listdir(folder)) == ["1.tokens", "2.tokens"]
    assert folder.stat().st_mode & 0o077 == 0
    assert folder.with_name("deleted on exit").exists()  # Hadoop deletes it when the JVM exits
    wait(lambda: forward_tokens(session).number == 2)  # announced once HDFS has the file
    assert base64.b64decode(forward_tokens(session).tokens) == b"HDTS third"


def test_a_failed_upload_is_retried_and_tokens_are_still_forwarded(jvm, caplog):
    session = jvm.session("three")
    loan = forward_tokens(session)
    own, path = Path(os.environ[VARIABLE]), jvm.fs.Path
    jvm.fs.Path = lambda parent, name="": (
        1 / 0 if str(parent).startswith("hdfs://nn") else path(parent, name)
    )
    jvm.give("second")
    wait(lambda: "cannot be handed on yet" in caplog.text)
    assert own.read_bytes() == b"second"
    loan = forward_tokens(session)
    assert (base64.b64decode(loan.tokens), loan.number) == (b"second", 0)
    jvm.fs.Path = path
    wait(lambda: forward_tokens(session).number > 0)
    newest = here(loan.folder) / f"{forward_tokens(session).number}.tokens"
    assert newest.read_bytes() == b"second"
    assert caplog.text.count("cannot be handed on yet") == 1


def test_after_a_lost_reply_the_next_file_has_a_new_number(jvm):
    session = jvm.session("twelve")
    loan = forward_tokens(session)
    here(loan.folder).mkdir(parents=True)
    (here(loan.folder) / "1.tokens").write_text("lost")
    jvm.give("second")
    wait(lambda: forward_tokens(session).number == 2)
    assert (here(loan.folder) / "1.tokens").read_text() == "lost"
    assert (here(loan.folder) / "2.tokens").read_text() == "second"


def test_the_next_application_of_a_process_forwards_its_tokens(jvm, tmp_path):
    forward_tokens(jvm.session("four"))
    first = Path(os.environ[VARIABLE])
    jvm.over = True
    wait(lambda: not token_forwarder._forwarders and not first.parent.exists())
    assert not os.environ.get(VARIABLE)  # because the tokens are no longer renewed
    other = Jvm(tmp_path)
    other.give("other")
    forward_tokens(other.session("five"))
    assert Path(os.environ[VARIABLE]).read_bytes() == b"other"
    os.environ[VARIABLE] = "/of/the/user"  # a user sets it
    other.give("newer")
    wait(lambda: forward_tokens(other.session("five")).number == 1)
    assert os.environ[VARIABLE] == "/of/the/user"
    other.over = True
    wait(lambda: not token_forwarder._forwarders)
    assert os.environ[VARIABLE] == "/of/the/user"


def test_two_overlapping_applications_leave_no_files(jvm, tmp_path):
    forward_tokens(jvm.session("thirteen"))
    other = Jvm(tmp_path)
    forward_tokens(other.session("fourteen"))
    jvm.over = other.over = True
    wait(lambda: not token_forwarder._forwarders and not os.environ.get(VARIABLE))


@pytest.mark.parametrize("file", ["", "/of/yarn/container_tokens"])
def test_a_users_token_file_is_kept_but_yarns_is_replaced(jvm, monkeypatch, file):
    monkeypatch.setenv(VARIABLE, "/of/the/user")
    session = jvm.session(f"six{file}")
    with token_scope(forward_tokens(session)):
        assert os.environ[VARIABLE] == "/of/the/user"
    jvm.over = True
    wait(lambda: not token_forwarder._forwarders)  # otherwise it would set the variable, too
    jvm.over = False
    monkeypatch.setenv(VARIABLE, file)
    loan = forward_tokens(session)
    assert Path(os.environ[VARIABLE]).read_bytes() == b"first"
    monkeypatch.setenv(VARIABLE, file)
    with token_scope(loan):
        assert Path(os.environ[VARIABLE]).read_bytes() == b"first"
    assert os.environ.get(VARIABLE, "") == file


def test_a_ticket_stays_unless_spark_renews_by_it(tmp_path):
    jvm = Jvm(tmp_path, keytab=False)
    assert forward_tokens(jvm.session("seven")) is None
    renewing = {"spark.kerberos.renewal.credentials": "ccache"}
    assert forward_tokens(jvm.session("seven", **renewing)) is not None
    assert not os.environ[VARIABLE]
    jvm.over = True


def test_without_tokens_to_forward_nothing_changes(jvm, tmp_path, caplog):
    assert forward_tokens(Jvm(tmp_path, secure=False).session("eight")) is None
    assert forward_tokens(SimpleNamespace()) is None  # Spark Connect
    assert not caplog.text
    jvm.fs.Path = lambda *_: 1 / 0
    assert forward_tokens(jvm.session("nine")) is None
    assert "tokens of Spark's JVM cannot be handed on" in caplog.text
    with token_scope(None):
        assert not os.environ[VARIABLE]
    with pytest.raises(HearthError, match="tokenLook is 'soon': set a time"):
        forward_tokens(jvm.session("nine", **{"spark.hearth.tokenLook": "soon"}))


def test_another_file_system_than_hdfs_is_a_warning(jvm, monkeypatch, caplog):
    monkeypatch.setattr(token_forwarder, "CORE_SCHEMES", ())
    loan = forward_tokens(jvm.session("ten"))
    assert loan.folder == "" and "spark.yarn.stagingDir" in caplog.text


def test_newer_tokens_are_in_sparks_staging_folder(jvm, tmp_path):
    staging = f"hdfs://nn{tmp_path}/staging"
    loan = forward_tokens(jvm.session("eleven", **{"spark.yarn.stagingDir": staging}))
    assert loan.folder.startswith(f"{staging}/.sparkStaging/eleven/")


def test_the_newest_of_several_is_used(tmp_path):
    for name in ("2.tokens", "11.tokens", "part", "x.tokens", "\xb2.tokens"):
        (tmp_path / name).write_text(f"HDTS {name}")
    with token_scope(forwarded(folder=f"hdfs://nn{tmp_path}")):
        wait(lambda: Path(os.environ[VARIABLE]).read_text() == "HDTS 11.tokens")


@pytest.mark.parametrize("damaged", ["", "HD", "<html>503</html>"])
def test_a_corrupt_file_does_not_replace_valid_tokens(tmp_path, capfd, damaged):
    (tmp_path / "1.tokens").write_text(damaged)
    said = []
    with token_scope(forwarded(folder=f"hdfs://nn{tmp_path}")):
        file = Path(os.environ[VARIABLE])
        wait(lambda: said.append(capfd.readouterr().err) or "not a token file" in "".join(said))
        assert file.read_text() == "forwarded"
        (tmp_path / "2.tokens").write_text("HDTS whole")
        wait(lambda: file.read_text() == "HDTS whole")
    assert f"1.tokens of {len(damaged)} bytes is not a token file" in "".join(said)


def test_yarns_tokens_precede_expired_forwarded_ones(monkeypatch, tmp_path):
    old = forwarded(forwarded_s=time.time() - 7200, folder=f"hdfs://nn{tmp_path}")
    with token_scope(old):
        assert Path(os.environ[VARIABLE]).read_bytes() == b"forwarded"  # no others exist
    yarns = tmp_path / "container_tokens"
    yarns.write_text("yarn's")
    monkeypatch.setenv(VARIABLE, str(yarns))
    with token_scope(old):
        file = Path(os.environ[VARIABLE])
        assert file != yarns and file.read_text() == "yarn's"
        (tmp_path / "part").write_text("HDTS newer")
        (tmp_path / "part").rename(tmp_path / "1.tokens")  # files are complete once renamed
        wait(lambda: file.read_text() == "HDTS newer")
    assert os.environ[VARIABLE] == str(yarns) and yarns.read_text() == "yarn's"
    os.utime(yarns, (0, time.time() - 7 * 86_400))  # YARN has stopped renewing them
    with token_scope(forwarded(forwarded_s=time.time() - 7200)):
        assert Path(os.environ[VARIABLE]).read_bytes() == b"forwarded"


def test_a_host_that_cannot_store_tokens_uses_its_own(monkeypatch, tmp_path, capfd):
    monkeypatch.setenv(VARIABLE, "/of/yarn/container_tokens")
    monkeypatch.setattr(forwarded_tokens, "spill_folder", lambda: str(tmp_path))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(forwarded_tokens, "replace_file", full)
    with token_scope(forwarded()):
        assert os.environ[VARIABLE] == "/of/yarn/container_tokens"
    assert "tokens cannot be written on this host: [Errno 28]" in capfd.readouterr().err
    assert not os.listdir(tmp_path)


class Shell:
    """Hadoop's shell, used without WebHDFS."""

    settings: dict[str, str] = {}

    def __init__(self, settings: dict[str, str]):
        Shell.settings = settings

    def names(self, folder: str) -> list[str]:
        return os.listdir(here(folder))

    def fetch(self, uri: str, path: str) -> None:
        Path(path).write_bytes(here(uri).read_bytes())


def refuse(*_: object, **__: object) -> None:
    raise HearthError("WebHDFS is off")


def test_hadoops_shell_serves_where_webhdfs_does_not(tmp_path, monkeypatch):
    monkeypatch.setattr(forwarded_tokens, "HadoopShell", Shell)
    monkeypatch.setattr(_core, "list_folder", refuse)
    (tmp_path / "1.tokens").write_text("HDTS by the shell")
    with token_scope(forwarded(folder=f"hdfs://nn{tmp_path}", settings={"dfs.nameservices": "nn"})):
        file = Path(os.environ[VARIABLE])
        wait(lambda: file.read_text() == "HDTS by the shell")
        assert os.listdir(file.parent) == ["tokens"]
        monkeypatch.setattr(forwarded_tokens, "_SHELL_LOOK_S", 0.02)
    assert Shell.settings == {"dfs.nameservices": "nn"}
    monkeypatch.setattr(forwarded_tokens, "HadoopShell", refuse)
    once = [refuse]  # a NameNode that restarts, then works again
    monkeypatch.setattr(
        _core, "list_folder", lambda *a, **k: (once.pop() if once else list_here)(*a, **k)
    )
    with token_scope(forwarded(folder=f"hdfs://nn{tmp_path}")):
        file = Path(os.environ[VARIABLE])
        wait(lambda: file.read_text() == "HDTS by the shell")


def test_a_failed_lookup_is_reported_once(monkeypatch, capfd):
    monkeypatch.setattr(Shell, "names", refuse)
    monkeypatch.setattr(forwarded_tokens, "HadoopShell", Shell)
    looks = []
    monkeypatch.setattr(_core, "list_folder", lambda *_, **__: looks.append(1) or refuse())
    monkeypatch.setattr(forwarded_tokens, "_SHELL_LOOK_S", 0.02)
    with token_scope(forwarded(folder="hdfs://nn/folder")):
        wait(lambda: len(looks) > 4)
        assert Path(os.environ[VARIABLE]).read_bytes() == b"forwarded"
    said = capfd.readouterr().err
    assert said.count("cannot check for newer delegation tokens: WebHDFS is off") == 1
