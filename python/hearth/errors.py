"""The errors that Hearth raises.

HearthError is the base of them all. A subclass says which kind of failure it is by its attribute
`code`, and derives from the built-in class that programs catch for this kind as well, so that both
`except hearth.HearthError` and `except FileNotFoundError` work. An error with a cause has it as
`__cause__`.

So hearth raises no plain ValueError, FileNotFoundError, RuntimeError, TimeoutError or the like.
Exceptions to this rule (tests/project/test_error_classes.py holds it):

* a wrong call, for which Python itself would raise one of them, is a TypeError, AttributeError,
  KeyError or ImportError, and a method for a subclass to define raises NotImplementedError;
* OSError and EOFError are caught again inside of hearth, which adds what failed;
* an API of others, such as Horovod's, has the class that its documentation names.
"""

from __future__ import annotations


class HearthError(RuntimeError):
    """A failure of Hearth; the message is one sentence: what failed, where, and what to do.

    Attributes:
        code: kind of the failure, such as "unavailable" or "invalid_argument".
        rank: rank of a training or id of a cluster's node; -1 if it is not of a single one.
        node: name of a cluster's node, such as "worker:0", or "".
        host: host of the rank or node, or "".
        layer: Caffe layer that failed, or "".
        iteration: iteration of a Caffe training, or -1.
        lost: whether the rank or node vanished or fell silent instead of reporting an error.
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
    """A file or folder exists already."""


class NotFoundError(HearthError, FileNotFoundError):
    """A named file, column, blob or member does not exist."""

    code = "not_found"


class DataLossError(HearthError):
    """Stored or received bytes are damaged."""

    code = "data_loss"


class UnavailableError(HearthError, ConnectionError):
    """A peer, process or server is gone or does not answer."""

    code = "unavailable"


class DeadlineExceededError(HearthError, TimeoutError):
    """An operation did not finish before its deadline."""

    code = "deadline_exceeded"


class AbortedError(HearthError):
    """Another rank failed first, and the message is from that rank; or the object was closed."""

    code = "aborted"


class PermissionDeniedError(HearthError, PermissionError):
    """Authentication failed, or a file system denied access."""

    code = "permission_denied"


class ResourceExhaustedError(HearthError, OSError):
    """Memory, disk, descriptors or another limit is used up."""

    code = "resource_exhausted"


class UnimplementedError(HearthError, NotImplementedError):
    """The operation is not implemented."""

    code = "unimplemented"


def invalid(text: str) -> InvalidArgumentError:
    """The error for a wrong argument or input, to raise."""
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
    """The class of a code; HearthError for an unknown one."""
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
    """The code of an error: its attribute `code`, or by its built-in class."""
    code = getattr(error, "code", None)
    if isinstance(code, str):
        return code
    found = (code for kind, code in _OF_BUILT_IN if isinstance(error, kind))
    return next(found, "internal")
