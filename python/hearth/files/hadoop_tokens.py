"""Delegation tokens of Spark's JVM on a cluster with Kerberos, lent to Python's processes.

Spark gives tokens to its JVMs alone, and new ones, too, which it gets by a keytab. The driver's
process gets them from here by a file of its own, executors with their tasks, and newer ones by a
folder in HDFS that is the user's alone; see borrowed_tokens.py.
"""

from __future__ import annotations

import atexit
import base64
import logging
import os
import shutil
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hearth.files.hadoop_errors import java_text, refusal
from hearth.files.hadoop_shell import hadoop_user
from hearth.files.uri import CORE_SCHEMES, scheme

logger = logging.getLogger(__name__)

VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"
_HDFS = ("HDFS_DELEGATION_TOKEN", "WEBHDFS delegation", "SWEBHDFS delegation")
# With it one is the application master, which executors are not.
_MASTER = "YARN_AM_RM_TOKEN"
# Newer tokens are looked for this often in the life of the present ones, and within these bounds.
_LOOKS = 50
_LEAST_S, _MOST_S = 1.0, 600.0


@dataclass(frozen=True)
class TokenLoan:
    """Tokens for one task; travels in Spark's task closure.

    Attributes:
        tokens: a token file in base64.
        folder: the URI of the folder of newer ones, named by their number (see token_file()); ""
            where there will be none.
        number: of these.
        look_s: how often newer ones are to be looked for.
    """

    tokens: str = field(repr=False)
    folder: str
    number: int
    look_s: float


def token_file(number: int) -> str:
    """The name of a file of tokens in a loan's folder; of no file that is still being written."""
    return f"{number}.tokens"


def lend_tokens(spark: Any) -> TokenLoan | None:
    """The tokens of Spark's JVM, for a task, where the JVM has any: it is kept up to date from then
    on. Also gives them to this process where the JVM has logged in by a keytab (--principal and
    --keytab), as Python has no ticket then; a file that the user has named stays.

    Raises:
        HearthError: they cannot be handed on.
    """
    if not hasattr(spark, "_jvm"):
        return None
    try:
        security = spark._jvm.org.apache.hadoop.security.UserGroupInformation
        if not security.isSecurityEnabled():
            return None
        with _lock:
            application = str(spark.sparkContext.applicationId)
            lender = _lenders.get(application)
            if lender is None:
                if not _read(spark._jvm).identity:  # it has a ticket, and executors what YARN left
                    return None
                lender = _lenders[application] = _Lender(spark, application)
        return lender.loan()
    except Exception as error:  # py4j's, and this host's disk
        raise refusal(_CANNOT, java_text(error), hadoop_user()) from None


_CANNOT = "the delegation tokens of Spark's JVM cannot be handed on"
_lock = threading.Lock()
_lenders: dict[str, _Lender] = {}


class _Lender:
    """Of one application: looks after its tokens until it ends, in a thread."""

    def __init__(self, spark: Any, application: str):
        self._jvm = spark._jvm
        self._configuration = spark._jsc.hadoopConfiguration()
        self._ended = spark.sparkContext._jsc.sc().isStopped
        self._application = application
        # Where Spark on YARN keeps, and removes, what is an application's.
        below = f".sparkStaging/{application}/hearth-{uuid.uuid4()}"
        home = self._jvm.org.apache.hadoop.fs.FileSystem.get(self._configuration).getHomeDirectory()
        folder = f"{home.toString()}/{below}"
        self._folder = folder if scheme(folder) in CORE_SCHEMES else ""
        self._mutex = threading.Lock()
        self._known, self._number = _read(self._jvm), 0
        self._file = self._own_file()
        self._keep_own_file()
        threading.Thread(target=self._watch, name="hearth-tokens", daemon=True).start()

    def loan(self) -> TokenLoan:
        with self._mutex:
            held = _read(self._jvm)  # newer than the folder's last, perhaps
            text = base64.b64encode(held.file).decode()
            return TokenLoan(text, self._folder, self._number, held.look_s)

    def _watch(self) -> None:
        while not self._is_over():
            try:
                with self._mutex:
                    self._look()
            except Exception as error:
                if not self._is_over():
                    logger.warning("%s yet: %s", _CANNOT, java_text(error).partition("\n")[0])
            time.sleep(self._known.look_s)
        with _lock:
            _lenders.pop(self._application, None)

    def _is_over(self) -> bool:
        try:
            return bool(self._ended())
        except Exception:  # the JVM is gone
            return True

    def _look(self) -> None:
        """Hands on what the JVM has beyond what is known."""
        found = _read(self._jvm)
        if found.identity == self._known.identity or not found.identity:
            return
        if self._folder:
            self._publish(found.file, self._number + 1)
        self._known, self._number = found, self._number + 1
        self._keep_own_file()

    def _publish(self, data: bytes, number: int) -> None:
        hadoop = self._jvm.org.apache.hadoop.fs
        folder = hadoop.Path(self._folder)
        system = folder.getFileSystem(self._configuration)
        if not system.exists(folder):
            system.mkdirs(folder, hadoop.permission.FsPermission("700"))
            system.deleteOnExit(folder)  # also where Spark does not
        part = hadoop.Path(folder, f"{number}.part")
        stream = system.create(part, True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
        if not system.rename(part, hadoop.Path(folder, token_file(number))):
            raise OSError(f"{self._folder} takes no file")

    def _own_file(self) -> Path | None:
        """That of this process; None where it has a ticket, or tokens that the user has named."""
        login = self._jvm.org.apache.hadoop.security.UserGroupInformation.getLoginUser()
        if not login.isFromKeytab() or (VARIABLE in os.environ and not _is_lent()):
            return None
        folder = tempfile.mkdtemp(prefix="hearth-tokens-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return Path(folder) / "tokens"

    def _keep_own_file(self) -> None:
        if self._file is not None:
            replace_file(self._file, self._known.file)
            os.environ[VARIABLE] = str(self._file)


@dataclass(frozen=True)
class _Tokens:
    file: bytes = field(repr=False)
    identity: frozenset[str] = field(repr=False)
    look_s: float


def _read(jvm: Any) -> _Tokens:
    """Those that the JVM has now."""
    security = jvm.org.apache.hadoop.security
    kept, identity, ends = security.Credentials(), [], []
    held = security.UserGroupInformation.getCurrentUser().getCredentials()
    for token in held.getAllTokens().toArray():
        kind = str(token.getKind())
        if kind == _MASTER:
            continue
        kept.addToken(token.getService(), token)
        identity.append(str(token.encodeToUrlString()))
        known = token.decodeIdentifier() if kind in _HDFS else None
        if known is not None:
            ends.append(known.getMaxDate() / 1000)
    stream = jvm.java.io.ByteArrayOutputStream()
    kept.writeTokenStorageToStream(jvm.java.io.DataOutputStream(stream))
    left = min(ends) - time.time() if ends else _MOST_S * _LOOKS
    look_s = min(max(left / _LOOKS, _LEAST_S), _MOST_S)
    return _Tokens(bytes(stream.toByteArray()), frozenset(identity), look_s)


def _is_lent() -> bool:
    """Whether the tokens of this process are YARN's, for its container, or of an application before
    this one, rather than the user's own."""
    return "CONTAINER_ID" in os.environ or "/hearth-tokens-" in os.environ[VARIABLE]


def replace_file(file: Path, data: bytes) -> None:
    """Writes a file that only its owner may read; whoever reads it meanwhile gets the old one."""
    part = file.with_suffix(".part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as stream:
        stream.write(data)
    part.replace(file)
