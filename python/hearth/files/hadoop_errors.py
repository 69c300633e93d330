"""What Hadoop's file systems say when they refuse, as one line with what to do about it."""

from __future__ import annotations

import re
from typing import Any

from hearth.native.failure import Failure

# Words of Hadoop's exceptions, the code of hearth::Error that they are, as in the core's own table
# (hearth/storage/webhdfs_answer.cc), and what they mean; "{told}" is its own first line.
_MEANINGS: tuple[tuple[str, str, str], ...] = (
    # First: such a text has the path, whose name may hold the words of others.
    (r"FileNotFoundException|No such file", "not_found", "there is no such file or folder"),
    (
        r"safe ?mode",
        "unavailable",
        "HDFS is in safe mode and takes no changes: wait until it ends "
        "(`hdfs dfsadmin -safemode wait`)",
    ),
    # Before the class that these are wrapped in.
    (
        r"GSSException: |SIMPLE authentication is not enabled|Client cannot authenticate via",
        "permission_denied",
        "the cluster requires Kerberos, and there is no valid ticket: kinit, or submit with "
        "--principal and --keytab",
    ),
    (
        r"AccessControlException|Permission denied",
        "permission_denied",
        "not allowed ({told}): ask its owner, or name a folder of your own",
    ),
    (
        r"QuotaExceeded|quota .*exceeded",
        "resource_exhausted",
        "the quota of a folder is used up ({told}): delete files there, or have it raised",
    ),
    (
        r"No FileSystem for scheme|UnsupportedFileSystem",
        "invalid_argument",
        "Spark has no file system for this scheme: is it spelt right, and are its jars there?",
    ),
    (
        r"InvalidToken|token .*(expired|can't be found)",
        "permission_denied",
        "the delegation token has expired ({told}): submit the job again, with --principal and "
        "--keytab if it runs longer than dfs.namenode.delegation.token.max-lifetime (7 days)",
    ),
    (
        r"Incomplete HDFS URI|no host",
        "invalid_argument",
        "it names no host, and no fs.defaultFS does: set HADOOP_CONF_DIR, or write hdfs://HOST/...",
    ),
    (
        r"UnknownHost|ConnectException|ConnectTimeout|Connection refused|Call From",
        "unavailable",
        "its server cannot be reached ({told}): is it the right host and port, and does it run?",
    ),
)
# Keys of object stores, which may have slashes, and users' passwords, in addresses. What follows a
# port is a path.
_PASSWORD = re.compile(r"://[^/@\s:]*:(?!\d+/)[^@\s]*@")
# Of a Java exception's text: the class names before the message.
_CLASSES = re.compile(r"^(?:[\w.$]+(?:\([\w.$]+\))?:\s+)+")


def without_password(text: str) -> str:
    """The text without the users and passwords in its addresses."""
    return _PASSWORD.sub("://***@", text)


def refusal(what: str, told: str, user: str) -> Exception:
    """A HearthError of one line, to raise: `what` could not be done for `user`, why, what to do.
    Its `code` is "internal" for words that are not known.

    `told`: a Java exception as text, class and message, or what FsShell printed.
    """
    what, told = without_password(what), without_password(told)
    line = next((line.strip() for line in told.splitlines() if line.strip()), "no reason given")
    own = _CLASSES.sub("", line)
    for words, code, meaning in _MEANINGS:
        if re.search(words, told, re.IGNORECASE):
            text = f"{what} (as user {user}): {meaning.format(told=own)}"
            return Failure(text, code).error()
    return Failure(f"{what} (as user {user}): {own}").error()


def java_text(error: BaseException) -> str:
    """Class and message of the Java exception that py4j or Spark has raised."""
    exception: Any = getattr(error, "java_exception", None)
    return str(exception.toString()) if exception is not None else str(error)
