"""Turns errors of Hadoop's file systems into one line that says what to do."""

from __future__ import annotations

import re
from typing import Any

from hearth.native.failure import Failure

# Patterns of Hadoop's exceptions, with hearth::Error codes (as in the core's table in
# hearth/storage/webhdfs_answer.cc) and explanations; "{message}" is the exception's first line.
_MEANINGS: tuple[tuple[str, str, str], ...] = (
    # Must be first: this exception's message contains the path, which may match other patterns.
    (r"FileNotFoundException|No such file", "not_found", "there is no such file or folder"),
    (
        r"safe ?mode",
        "unavailable",
        "HDFS is in safe mode and takes no changes: wait until it ends "
        "(`hdfs dfsadmin -safemode wait`)",
    ),
    # Must precede AccessControlException, which may wrap these.
    (
        r"GSSException: |SIMPLE authentication is not enabled|Client cannot authenticate via",
        "permission_denied",
        "the cluster requires Kerberos, and there is no valid ticket: kinit, or submit with "
        "--principal and --keytab",
    ),
    (
        r"AccessControlException|Permission denied",
        "permission_denied",
        "not allowed ({message}): ask the owner for access, or use a folder that you can write to",
    ),
    (
        r"QuotaExceeded|quota .*exceeded",
        "resource_exhausted",
        "the quota of a folder is used up ({message}): delete files there, or ask for a "
        "larger quota",
    ),
    (
        r"No FileSystem for scheme|UnsupportedFileSystem",
        "invalid_argument",
        "Spark has no file system for this scheme: check its spelling, and that its jars are "
        "installed",
    ),
    (
        r"InvalidToken|token .*(expired|can't be found)",
        "permission_denied",
        "the delegation token has expired ({message}): submit the job again, with --principal and "
        "--keytab if it runs longer than dfs.namenode.delegation.token.max-lifetime (7 days)",
    ),
    (
        r"Incomplete HDFS URI|no host",
        "invalid_argument",
        "it names no host, and fs.defaultFS is not set: set HADOOP_CONF_DIR, or write "
        "hdfs://HOST/...",
    ),
    (
        r"UnknownHost|ConnectException|ConnectTimeout|Connection refused|Call From",
        "unavailable",
        "its server cannot be reached ({message}): check the host and port, and that it is running",
    ),
)
# The user and password in a URI. An object store's key may contain slashes, but digits between a
# colon and a slash are a port.
_PASSWORD = re.compile(r"://[^/@\s:]*:(?!\d+/)[^@\s]*@")
# The class names before the message of a Java exception.
_CLASSES = re.compile(r"^(?:[\w.$]+(?:\([\w.$]+\))?:\s+)+")


def without_password(text: str) -> str:
    """Masks the user names and passwords of URIs."""
    return _PASSWORD.sub("://***@", text)


def refusal(what: str, message: str, user: str) -> Exception:
    """Returns a one-line HearthError to raise: what failed for `user`, why, and what to do. Its
    `code` is "internal" if the message is unknown.

    `message`: a Java exception's class and message, or the output of FsShell.
    """
    what, message = without_password(what), without_password(message)
    line = next((line.strip() for line in message.splitlines() if line.strip()), "no reason given")
    own = _CLASSES.sub("", line)
    for words, code, meaning in _MEANINGS:
        if re.search(words, message, re.IGNORECASE):
            text = f"{what} (as user {user}): {meaning.format(message=own)}"
            return Failure(text, code).error()
    return Failure(f"{what} (as user {user}): {own}").error()


def java_text(error: BaseException) -> str:
    """The class and message of a Java exception that py4j or Spark raised."""
    exception: Any = getattr(error, "java_exception", None)
    return str(exception.toString()) if exception is not None else str(error)
