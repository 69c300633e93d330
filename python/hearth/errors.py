"""The errors that Hearth raises.

HearthError is their base class. A subclass's attribute `code` names the kind of failure. The
subclass also derives from the built-in class for this kind, so both `except hearth.HearthError` and
`except FileNotFoundError` work. `__cause__` is the underlying error, if there is one.

So hearth does not raise the plain ValueError, FileNotFoundError, RuntimeError, TimeoutError or the
like. tests/project/test_error_classes.py checks this rule. Other classes are raised in three cases:

* a wrong call raises TypeError, AttributeError, KeyError or ImportError, as Python itself would,
  and an abstract method raises NotImplementedError;
* OSError and EOFError are caught again inside hearth and converted, to add what failed;
* a foreign API, such as Horovod's, raises the class that its documentation names.
"""

from __future__ import annotations


class HearthError(RuntimeError):
    """A failure of Hearth; the message is one sentence: what failed, where, and what to do.

    Attributes:
        code: kind of the failure, such as "unavailable" or "invalid_argument".
        rank: rank in a training or id of a cluster's node; -1 if no single one failed.
        node: name of a cluster's node, such as "worker:0", or "".
        host: the rank's or node's host, or "".
        layer: Caffe layer that failed, or "".
        iteration: iteration of a Caffe training, or -1.
        lost: whether the rank or node disappeared or stopped responding without reporting an error.
    """

    code = "internal"
    rank = -1
    node = ""
    host = ""
    layer = ""
    iteration = -1
    lost = False


class InvalidArgumentError(HearthError, ValueError):
    """The caller's or the user's input is wrong; a retry will not help."""

    code = "invalid_argument"


class ExistsError(InvalidArgumentError, FileExistsError):
    """A file or folder already exists."""


class NotFoundError(HearthError, FileNotFoundError):
    """A named file, column, blob or member does not exist."""

    code = "not_found"


class DataLossError(HearthError):
    """Stored or received bytes are damaged."""

    code = "data_loss"


class UnavailableError(HearthError, ConnectionError):
    """A peer, process or server has ended or does not respond."""

    code = "unavailable"


class DeadlineExceededError(HearthError, TimeoutError):
    """An operation did not finish before its deadline."""

    code = "deadline_exceeded"


class AbortedError(HearthError):
    """Another rank failed first (its message is reported), or the object was closed."""

    code = "aborted"


class PermissionDeniedError(HearthError, PermissionError):
    """Authentication failed, or a file system denied access."""

    code = "permission_denied"


class ResourceExhaustedError(HearthError, OSError):
    """Memory, disk space, descriptors or another limited resource is exhausted."""

    code = "resource_exhausted"


class UnimplementedError(HearthError, NotImplementedError):
    """The operation is not implemented."""

    code = "unimplemented"


def invalid(text: str) -> InvalidArgumentError:
    """Returns the error to raise for a wrong argument or input."""
    return InvalidArgumentError(text)


_BY_CODE: dict[str, type[HearthError]] = {
    kind.code: kind
    for kind in (
        HearthError, InvalidArgumentError, NotFoundError, DataLossError, UnavailableError,
        DeadlineExceededError, AbortedError, PermissionDeniedError, ResourceExhaustedError,
        UnimplementedError,
    )
}  # fmt: skip


def error_class(code: str) -> type[HearthError]:
    """The error class of a code; HearthError if the code is unknown."""
    return _BY_CODE.get(code, HearthError)


_OF_BUILT_IN = (
    (FileNotFoundError, "not_found"),
    (PermissionError, "permission_denied"),
    (TimeoutError, "deadline_exceeded"),
    (ConnectionError, "unavailable"),
    (OSError, "resource_exhausted"),
    (NotImplementedError, "unimplemented"),
    ((ValueError, TypeError), "invalid_argument"),
)


def code_of(error: BaseException) -> str:
    """The code of an error: its attribute `code`, or otherwise the code of its built-in class."""
    code = getattr(error, "code", None)
    if isinstance(code, str):
        return code
    found = (code for kind, code in _OF_BUILT_IN if isinstance(error, kind))
    return next(found, "internal")
