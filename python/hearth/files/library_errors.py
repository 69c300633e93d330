"""Turns errors of pyarrow's and fsspec's file systems into one line with a code."""

from __future__ import annotations

import errno
import re

from hearth.files.hadoop_errors import without_password
from hearth.native.failure import Failure

# Patterns of object stores' messages and error codes, with hearth::Error codes. Used only for
# exceptions whose class does not determine the code.
_MEANINGS: tuple[tuple[str, str], ...] = (
    # Transient errors come first, because a timeout's message may match other patterns.
    (
        r"slow_?down|server_?busy|throttl|TooManyRequests|ServiceUnavailable|InternalError"
        r"|time(d)?[ _-]?out|NETWORK_CONNECTION|could ?n.t (connect|resolve)"
        r"|connection (error|reset|refused|closed)|EndpointConnectionError|UNAVAILABLE"
        r"|(status|code)\D{0,12}(429|5\d\d)\b",
        "unavailable",
    ),
    (
        r"Access_?Denied|Forbidden|Unauthorized|InvalidAccessKeyId|INVALID_ACCESS_KEY_ID"
        r"|Signature_?DoesNotMatch|SIGNATURE_DOES_NOT_MATCH|Expired_?Token|Invalid_?Token"
        r"|(Unable to locate|NoCredentials|no valid|invalid) ?credentials?|NoCredentialsError"
        r"|AuthenticationFailed|AuthorizationPermissionMismatch|PERMISSION_DENIED|UNAUTHENTICATED"
        r"|permission denied|(status|code)\D{0,12}40[13]\b",
        "permission_denied",
    ),
    (
        r"NoSuch(Bucket|Key)|NO_SUCH_(BUCKET|KEY)|RESOURCE_NOT_FOUND|(Container|Blob)NotFound"
        r"|bucket does not exist|\bNOT_FOUND\b|not found|no such file|(status|code)\D{0,12}404\b",
        "not_found",
    ),
    (r"quota|no space left|RESOURCE_EXHAUSTED", "resource_exhausted"),
)
_ERRNOS = {
    errno.ENOENT: "not_found",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EROFS: "permission_denied",
    errno.ENOSPC: "resource_exhausted",
    errno.EDQUOT: "resource_exhausted",
}


def library_refusal(what: str, uri: str, error: Exception) -> Exception:
    """Returns a one-line HearthError to raise: what failed for `uri`, and the library's message.

    Its `code` is "internal" if the cause is unknown; such an error may be transient, like
    "unavailable".
    """
    said = " ".join(str(error).split()) or type(error).__name__
    line = without_password(f"{what} {uri}".strip() + f": {said}")
    return Failure(line, _code(error, uri)).error()


def _code(error: Exception, uri: str) -> str:
    if isinstance(error, ConnectionError | TimeoutError):
        return "unavailable"
    if isinstance(error, FileNotFoundError):
        return "not_found"
    if isinstance(error, PermissionError):
        return "permission_denied"
    if isinstance(error, IsADirectoryError | NotADirectoryError | FileExistsError):
        return "invalid_argument"
    if isinstance(error, OSError) and error.errno in _ERRNOS:
        return _ERRNOS[error.errno]
    text = f"{type(error).__name__}: {error}"
    for name in filter(None, uri.split("/")):  # a folder may be named "quota"
        text = text.replace(name, "*")
    for words, code in _MEANINGS:
        if re.search(words, text, re.IGNORECASE):
            return code
    # These mean an unknown scheme, a missing package, or an unsupported method.
    wrong = isinstance(error, ValueError | TypeError | ImportError | NotImplementedError)
    return "invalid_argument" if wrong else "internal"
