"""Exceptions of a cluster.

Their attributes locate the failure: node ("worker:0"), rank (the node's id), host, code, and
whether a process was lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from hearth.errors import HearthError
from hearth.native.failure import Failure, TaskError
from hearth.spark.failures import cause_line, wrong_python


class ClusterError(HearthError):
    """Raised when a cluster, or one of its nodes, has failed; the message names the node, its host
    and the reason."""

    @classmethod
    def of(cls, failure: Failure) -> Self:
        """An error with the failure's text and fields."""
        error = cls(failure.text)
        failure.note_in(error)
        return error


class NodeError(ClusterError):
    """Raised when a node has failed; the message has its traceback, exit status or signal."""


class ReservationTimeoutError(ClusterError, TimeoutError):
    """Raised when some nodes have not started in time; the message lists the missing nodes, with
    the likely reason."""


class FeedTimeoutError(ClusterError, TimeoutError):
    """Raised when a node has consumed no rows for `feed_timeout` seconds."""


# A likely cause of a stalled feed.
TAKE_IN_STEP = (
    "a rank without rows blocks the others in their collective operations: iterate over "
    "in_step(), which makes all ranks take the same number of steps"
)


def took_none(who: str, what: str, timeout_s: float) -> str:
    """The text of a FeedTimeoutError."""
    return (
        f"Timeout while feeding partition: {who} took no {what} for {timeout_s:g} s; if it only "
        f"computes for longer, raise the timeout (timeout_s, feed_timeout); {TAKE_IN_STEP}"
    )


def returned(where: str) -> str:
    """The error for rows sent to a node whose main function has returned."""
    return (
        f"{where} takes no more rows: its main function has returned before the feed's end (loop "
        "until the feed ends, or call terminate() on it to skip the rest)"
    )


_KINDS = {
    kind.__name__: kind
    for kind in (ClusterError, NodeError, ReservationTimeoutError, FeedTimeoutError)
}


@contextmanager
def reported_to_driver() -> Iterator[None]:
    """Converts a ClusterError in a Spark task to a TaskError, from which own_error() restores
    it."""
    try:
        yield
    except ClusterError as error:
        kind = type(error).__name__
        raise TaskError(Failure.of(vars(error), text=str(error), kind=kind)) from error


def own_error(error: BaseException) -> BaseException:
    """The cluster's own error, extracted from Spark's report of a failed task."""
    failure = Failure.find(str(error))
    if failure is not None and failure.kind in _KINDS:
        return _KINDS[failure.kind].of(failure)
    if python := wrong_python(str(error)):
        return ClusterError(python)
    return error if isinstance(error, Exception) else ClusterError(str(error))


def job_error(error: BaseException) -> ClusterError:
    """The error for a cluster's failed Spark job, in one line: the cluster's own error, or a task's
    exception, e.g. from a function that computes the rows."""
    found = own_error(error)
    if isinstance(found, ClusterError):
        return found
    return ClusterError(f"Spark could not compute or send the rows: {cause_line(str(error))}")
