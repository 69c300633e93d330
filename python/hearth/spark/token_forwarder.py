"""Forwards the delegation tokens of Spark's JVM to Python processes on a cluster with Kerberos.

Only Spark's JVMs, with a keytab, obtain new tokens before the old ones expire. The driver's process
reads them from a private file. Tasks receive them in their closure, and read newer ones from a
folder in HDFS that is private to the user. See files/forwarded_tokens.py and decision 053.
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
# How often to check for new tokens. Spark renews tokens after three quarters of their lifetime,
# which may be a day.
_LOOK = "60s"
_LEAST_LOOK_S, _MOST_LOOK_S = 1.0, 86_400.0
_CANNOT = "the delegation tokens of Spark's JVM cannot be handed on"
# The kind of the token that identifies the application master, which tasks must not receive.
_MASTER = "YARN_AM_RM_TOKEN"
# Prefixes of the Hadoop settings that locate HDFS; settings that contain object stores' keys have
# other prefixes.
_WHERE = ("dfs.", "fs.defaultFS", "fs.viewfs.", "hadoop.")

_lock = threading.Lock()
_forwarders: dict[str, _Forwarder] = {}


def forward_tokens(spark: Any) -> ForwardedTokens | None:
    """Returns the tokens of Spark's JVM for a task, if the JVM renews them. From then on, tasks and
    this process also receive newer tokens.

    This process receives tokens only if the JVM has logged in with a keytab (--principal and
    --keytab), because Python has no ticket then, and if the user has not set a token file. If
    tokens cannot be forwarded, logs a warning; tasks then use the tokens of their YARN containers.

    Raises:
        HearthError: `spark.hearth.tokenLook` is not a time.
    """
    if not _renews(spark):
        return None
    look_s = time_setting_s(spark, LOOK_SETTING, _LOOK)
    look_s = min(max(look_s, _LEAST_LOOK_S), _MOST_LOOK_S)
    try:
        with _lock:
            application = str(spark.sparkContext.applicationId)
            if application not in _forwarders:
                _forwarders[application] = _Forwarder(spark, look_s)
            forwarder = _forwarders[application]
        return forwarder.tokens()
    except Exception as error:  # from py4j, or from this host's disk
        logger.warning("%s: %s", _CANNOT, _line(error))
        return None


def _renews(spark: Any) -> bool:
    """Whether the JVM itself logs in to Kerberos, because only then does Spark renew tokens."""
    try:
        security = spark._jvm.org.apache.hadoop.security.UserGroupInformation
        if not security.isSecurityEnabled():
            return False
        credentials = spark.sparkContext.getConf().get("spark.kerberos.renewal.credentials", "")
        return security.getLoginUser().isFromKeytab() or credentials == "ccache"
    except Exception:  # Spark Connect, or a session without access to its JVM
        return False


def _line(error: BaseException) -> str:
    return java_text(error).partition("\n")[0]


class _Forwarder:
    """Forwards one application's tokens in a thread until the application ends."""

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
        self._number = self._tried = 0  # number of the newest file; of the last attempt
        self._published = self._identity(self._held())
        self._own: frozenset[str] | None = None  # this process's tokens
        before = os.environ.get(VARIABLE, "")
        self._before = "" if is_forwarded(before) else before  # not an earlier session's file
        self._look()
        threading.Thread(target=self._watch, name="hearth-tokens", daemon=True).start()

    def tokens(self) -> ForwardedTokens:
        number = self._number  # read before the tokens, which must not be older
        text = base64.b64encode(self._bytes(self._held())).decode()
        return ForwardedTokens(
            text, self._folder, number, self._look_s, time.time(), settings=self._settings
        )

    def _folder_of_newer(self, spark: Any, staging: str) -> str:
        """A folder in the application's staging folder, which Spark removes; "" without HDFS."""
        try:
            files = HadoopFiles.of(spark)
            assert files is not None  # None only with Spark Connect
            below = f".sparkStaging/{self._application}/hearth-{uuid.uuid4()}"
            folder = files.qualified(f"{staging}/{below}" if staging else below)
            if scheme(folder) in CORE_SCHEMES:
                return folder
            why = f"{folder} is not in HDFS: set spark.yarn.stagingDir to a folder in HDFS"
        except Exception as error:
            why = _line(error)
        logger.warning("delegation tokens are forwarded, but renewed tokens will not be: %s", why)
        return ""

    def _watch(self) -> None:
        reported = ""
        while not self._is_over():
            try:
                self._look()
                reported = ""
            except Exception as error:
                if not reported and not self._is_over():
                    reported = _line(error)
                    logger.warning("%s yet: %s", _CANNOT, reported)
            time.sleep(self._look_s / 2)
        with _lock:
            _forwarders.pop(self._application, None)
        self._take_back()

    def _take_back(self) -> None:
        """Restores this process's environment, because its tokens are no longer renewed."""
        if os.getpid() != self._process:
            return  # in a forked child
        if os.environ.get(VARIABLE) == str(self._private / "tokens"):
            os.environ[VARIABLE] = self._before
            if not self._before:
                del os.environ[VARIABLE]
        shutil.rmtree(self._private, ignore_errors=True)

    def _is_over(self) -> bool:
        from py4j.protocol import Py4JNetworkError

        try:
            return bool(self._ended())
        except (OSError, Py4JNetworkError):  # the JVM has ended
            return True
        except Exception:
            return False

    def _look(self) -> None:
        """Forwards the JVM's tokens if they are new."""
        credentials = self._held()
        found = self._identity(credentials)
        if found != self._own and self._wants_own_file():
            file = self._private / "tokens"
            replace_file(file, self._bytes(credentials))
            if os.environ.get(VARIABLE) != str(file):
                os.environ[VARIABLE] = str(file)
            self._own = found
        if self._folder and found != self._published:
            self._tried += 1  # if a reply was lost, the last attempt's number is taken
            self._publish(credentials, self._tried)
            self._published, self._number = found, self._tried

    def _held(self) -> Any:
        """The JVM's tokens as Credentials, without the application master's token and secret keys
        such as Spark's RPC secret.
        """
        security = self._jvm.org.apache.hadoop.security
        credentials = security.UserGroupInformation.getCurrentUser().getCredentials()
        forwarded = security.Credentials()
        for alias in credentials.getTokenMap().keySet().toArray():
            token = credentials.getToken(alias)
            if str(token.getKind()) != _MASTER:
                forwarded.addToken(alias, token)
        return forwarded

    def _identity(self, credentials: Any) -> frozenset[str]:
        """Identifies the tokens without their passwords, because py4j may log what it transfers."""
        return frozenset(str(token.toString()) for token in credentials.getAllTokens().toArray())

    def _bytes(self, credentials: Any) -> bytes:
        """A token file's content. The JVM writes the file, because py4j may log what it
        transfers."""
        file = self._private / uuid.uuid4().hex
        path = self._jvm.org.apache.hadoop.fs.Path(file.as_uri())
        try:
            credentials.writeTokenStorageFile(path, self._configuration)
            return file.read_bytes()
        finally:
            for left in (file, file.with_name(f".{file.name}.crc")):
                left.unlink(missing_ok=True)

    def _publish(self, credentials: Any, number: int) -> None:
        hadoop = self._jvm.org.apache.hadoop.fs
        folder = hadoop.Path(self._folder)
        system = folder.getFileSystem(self._configuration)
        if not system.exists(folder):
            system.mkdirs(folder, hadoop.permission.FsPermission("700"))
            system.deleteOnExit(folder)  # unless Spark removes it first
        part, target = (hadoop.Path(folder, name) for name in ("part", token_file(number)))
        stream = system.create(part, True)
        try:
            credentials.writeTokenStorageToStream(stream)
        finally:
            stream.close()
        if not system.rename(part, target):
            raise OSError(f"cannot create a file in {self._folder}")

    def _wants_own_file(self) -> bool:
        """Whether only the JVM can log in, and the user has not set a token file."""
        login = self._jvm.org.apache.hadoop.security.UserGroupInformation.getLoginUser()
        return bool(login.isFromKeytab()) and not is_set_by_user(os.environ.get(VARIABLE, ""))
