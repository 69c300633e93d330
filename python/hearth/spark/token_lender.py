"""Delegation tokens of Spark's JVM on a cluster with Kerberos, lent to Python's processes.

With a keytab Spark's JVMs, and they alone, get new tokens before the old ones end. The driver's
process gets them from here by a file of its own, tasks with their closure, and newer ones by a
folder in HDFS that is the user's alone; see files/forwarded_tokens.py and decision 053.
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
from pathlib import Path
from typing import Any

from hearth.files.forwarded_tokens import (
    PREFIX,
    VARIABLE,
    ForwardedTokens,
    is_forwarded,
    is_set_by_user,
    replace_file,
    token_file,
)
from hearth.files.hadoop_errors import java_text
from hearth.files.hadoop_files import HadoopFiles, hadoop_settings
from hearth.files.uri import CORE_SCHEMES, scheme
from hearth.spark.time_setting import time_setting_s

logger = logging.getLogger(__name__)

LOOK_SETTING = "spark.hearth.tokenLook"
# Spark has new tokens when three quarters of the old ones' time are over: of a day, say.
_LOOK = "60s"
_LEAST_LOOK_S, _MOST_LOOK_S = 1.0, 86_400.0
_CANNOT = "the delegation tokens of Spark's JVM cannot be handed on"
# With it one is the application master, which tasks are not.
_MASTER = "YARN_AM_RM_TOKEN"
# Hadoop's settings by which HDFS is found; no keys of object stores.
_WHERE = ("dfs.", "fs.defaultFS", "fs.viewfs.", "hadoop.")

_lock = threading.Lock()
_lenders: dict[str, _Lender] = {}


def lend_tokens(spark: Any) -> ForwardedTokens | None:
    """The tokens of Spark's JVM, for a task, where the JVM gets newer ones as they end; from then
    on tasks and this process are given those, too.

    This process gets them where the JVM has logged in by a keytab (--principal and --keytab), as
    Python has no ticket then; a token file that the user has named stays. What cannot be lent is a
    warning: tasks then show what YARN has left in their containers.

    Raises:
        HearthError: `spark.hearth.tokenLook` is no time.
    """
    if not _renews(spark):
        return None
    look_s = time_setting_s(spark, LOOK_SETTING, _LOOK)
    look_s = min(max(look_s, _LEAST_LOOK_S), _MOST_LOOK_S)
    try:
        with _lock:
            application = str(spark.sparkContext.applicationId)
            if application not in _lenders:
                _lenders[application] = _Lender(spark, look_s)
            lender = _lenders[application]
        return lender.loan()
    except Exception as error:  # py4j's, and this host's disk
        logger.warning("%s: %s", _CANNOT, _line(error))
        return None


def _renews(spark: Any) -> bool:
    """Whether the JVM logs in to Kerberos by itself, as Spark renews tokens only then."""
    try:
        security = spark._jvm.org.apache.hadoop.security.UserGroupInformation
        if not security.isSecurityEnabled():
            return False
        credentials = spark.sparkContext.getConf().get("spark.kerberos.renewal.credentials", "")
        return security.getLoginUser().isFromKeytab() or credentials == "ccache"
    except Exception:  # Spark Connect, or a session that lets nobody at its JVM
        return False


def _line(error: BaseException) -> str:
    return java_text(error).partition("\n")[0]


class _Lender:
    """Of one application: looks after its tokens until it ends, in a thread."""

    def __init__(self, spark: Any, look_s: float):
        self._jvm, self._look_s = spark._jvm, look_s
        self._configuration = spark._jsc.hadoopConfiguration()
        self._ended = spark.sparkContext._jsc.sc().isStopped
        self._application = str(spark.sparkContext.applicationId)
        self._private, self._process = Path(tempfile.mkdtemp(prefix=PREFIX)), os.getpid()
        atexit.register(self._take_back)
        hadoop = hadoop_settings(spark).items()
        self._settings = {key: value for key, value in hadoop if key.startswith(_WHERE)}
        staging = spark.sparkContext.getConf().get("spark.yarn.stagingDir", "")
        self._folder = self._folder_of_newer(spark, staging)
        self._number = self._tried = 0  # of the newest file there, and of the last attempt's
        self._published = self._identity(self._held())
        self._own: frozenset[str] | None = None  # what this process has
        before = os.environ.get(VARIABLE, "")
        self._before = "" if is_forwarded(before) else before  # an application's before this one
        self._look()
        threading.Thread(target=self._watch, name="hearth-tokens", daemon=True).start()

    def loan(self) -> ForwardedTokens:
        number = self._number  # asked first: the tokens may only be newer
        text = base64.b64encode(self._bytes(self._held())).decode()
        return ForwardedTokens(
            text, self._folder, number, self._look_s, time.time(), settings=self._settings
        )

    def _folder_of_newer(self, spark: Any, staging: str) -> str:
        """Where Spark on YARN keeps, and removes, what is an application's. "" if not in HDFS."""
        try:
            files = HadoopFiles.of(spark)
            assert files is not None  # Spark Connect is not lent from
            below = f".sparkStaging/{self._application}/hearth-{uuid.uuid4()}"
            folder = files.qualified(f"{staging}/{below}" if staging else below)
            if scheme(folder) in CORE_SCHEMES:
                return folder
            why = f"{folder} is not in HDFS: name a folder there by spark.yarn.stagingDir"
        except Exception as error:
            why = _line(error)
        logger.warning("delegation tokens are lent, but newer ones will not come: %s", why)
        return ""

    def _watch(self) -> None:
        told = ""
        while not self._is_over():
            try:
                self._look()
                told = ""
            except Exception as error:
                if not told and not self._is_over():
                    told = _line(error)
                    logger.warning("%s yet: %s", _CANNOT, told)
            time.sleep(self._look_s / 2)
        with _lock:
            _lenders.pop(self._application, None)
        self._take_back()

    def _take_back(self) -> None:
        """Leaves this process as it was: nobody renews what it has from here on."""
        if os.getpid() != self._process:
            return  # a forked child ends
        if os.environ.get(VARIABLE) == str(self._private / "tokens"):
            os.environ[VARIABLE] = self._before
            if not self._before:
                del os.environ[VARIABLE]
        shutil.rmtree(self._private, ignore_errors=True)

    def _is_over(self) -> bool:
        from py4j.protocol import Py4JNetworkError

        try:
            return bool(self._ended())
        except (OSError, Py4JNetworkError):  # the JVM is gone
            return True
        except Exception:
            return False

    def _look(self) -> None:
        """Hands on what the JVM has beyond what is known."""
        held = self._held()
        found = self._identity(held)
        if found != self._own and self._wants_own_file():
            file = self._private / "tokens"
            replace_file(file, self._bytes(held))
            if os.environ.get(VARIABLE) != str(file):
                os.environ[VARIABLE] = str(file)
            self._own = found
        if self._folder and found != self._published:
            self._tried += 1  # where an answer was lost the last number may be taken
            self._publish(held, self._tried)
            self._published, self._number = found, self._tried

    def _held(self) -> Any:
        """The JVM's tokens as Credentials, without what makes it the application master, and
        without secret keys, of which Spark's RPC has one."""
        security = self._jvm.org.apache.hadoop.security
        held = security.UserGroupInformation.getCurrentUser().getCredentials()
        lent = security.Credentials()
        for alias in held.getTokenMap().keySet().toArray():
            token = held.getToken(alias)
            if str(token.getKind()) != _MASTER:
                lent.addToken(alias, token)
        return lent

    def _identity(self, held: Any) -> frozenset[str]:
        """Not by what proves a token: py4j logs all that passes through it, if it is asked to."""
        return frozenset(str(token.toString()) for token in held.getAllTokens().toArray())

    def _bytes(self, held: Any) -> bytes:
        """A token file, which the JVM writes for the same reason."""
        file = self._private / uuid.uuid4().hex
        path = self._jvm.org.apache.hadoop.fs.Path(file.as_uri())
        try:
            held.writeTokenStorageFile(path, self._configuration)
            return file.read_bytes()
        finally:
            for left in (file, file.with_name(f".{file.name}.crc")):
                left.unlink(missing_ok=True)

    def _publish(self, held: Any, number: int) -> None:
        hadoop = self._jvm.org.apache.hadoop.fs
        folder = hadoop.Path(self._folder)
        system = folder.getFileSystem(self._configuration)
        if not system.exists(folder):
            system.mkdirs(folder, hadoop.permission.FsPermission("700"))
            system.deleteOnExit(folder)  # also where Spark does not
        part, target = (hadoop.Path(folder, name) for name in ("part", token_file(number)))
        stream = system.create(part, True)
        try:
            held.writeTokenStorageToStream(stream)
        finally:
            stream.close()
        if not system.rename(part, target):
            raise OSError(f"{self._folder} takes no file")

    def _wants_own_file(self) -> bool:
        """Where the JVM alone can log in, and the user has not named tokens."""
        login = self._jvm.org.apache.hadoop.security.UserGroupInformation.getLoginUser()
        return bool(login.isFromKeytab()) and not is_set_by_user(os.environ.get(VARIABLE, ""))
