"""Tokens of Spark's JVM for the driver's own process."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlparse

import pytest

from hearth.files.hadoop_tokens import lend_tokens

VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"


class Users:
    """Hadoop's UserGroupInformation, as lend_tokens() uses it."""

    def __init__(self, secure: bool = True, keytab: bool = True, tokens: int = 1):
        self.isSecurityEnabled = lambda: secure
        login = SimpleNamespace(isFromKeytab=lambda: keytab)
        self.getLoginUser = lambda: login
        credentials = SimpleNamespace(
            numberOfTokens=lambda: tokens,
            writeTokenStorageFile=lambda path, conf: Path(urlparse(path).path).write_text("HDTS"),
        )
        self.getCurrentUser = lambda: SimpleNamespace(getCredentials=lambda: credentials)


def session(users: Users) -> SimpleNamespace:
    security = SimpleNamespace(UserGroupInformation=users)
    hadoop = SimpleNamespace(security=security, fs=SimpleNamespace(Path=str))
    java = SimpleNamespace(net=SimpleNamespace(URI=str))
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop)), java=java)
    return SimpleNamespace(_jvm=jvm, _jsc=SimpleNamespace(hadoopConfiguration=lambda: None))


@pytest.fixture(autouse=True)
def variable(monkeypatch):
    monkeypatch.setenv(VARIABLE, "")  # so that it is as before afterwards
    del os.environ[VARIABLE]


def test_a_keytabs_tokens_are_lent_to_this_user_alone():
    lend_tokens(session(Users()))
    file = Path(os.environ[VARIABLE])
    assert file.read_text() == "HDTS"
    assert file.parent.stat().st_mode & 0o077 == 0


def test_what_is_there_stays(monkeypatch):
    monkeypatch.setenv(VARIABLE, "/of/yarn")
    lend_tokens(session(Users()))
    assert os.environ[VARIABLE] == "/of/yarn"


@pytest.mark.parametrize("users", [Users(secure=False), Users(keytab=False), Users(tokens=0)])
def test_where_there_are_none_or_a_ticket_nothing_is_lent(users):
    lend_tokens(session(users))
    assert VARIABLE not in os.environ


def test_with_connect_there_is_no_jvm():
    lend_tokens(SimpleNamespace())
    assert VARIABLE not in os.environ
