"""What a cluster raises: always typed, never an exit of the driver.

Their attributes say what is known of where: node ("worker:0"), rank (the node's id), host, code,
and whether it was lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hearth.native.failure import Failure, TaskError
from hearth.spark.failures import wrong_python


class ClusterError(RuntimeError):
    """A cluster, or one of its nodes, failed; the message names the node, its host and why."""

    @classmethod
    def of(cls, failure: Failure) -> ClusterError:
        """With the failure's text and fields."""
        error = cls(failure.text)
        failure.note_in(error)
        return error


# An error that nobody has said more of has the defaults.
Failure("").note_in(ClusterError)


class NodeError(ClusterError):
    """A node failed: its own traceback, exit status or signal is in the message."""


class ReservationTimeoutError(ClusterError, TimeoutError):
    """Not all nodes came in time; the message says which, and why that may be."""


class FeedTimeoutError(ClusterError, TimeoutError):
    """A node took no rows for `feed_timeout` seconds."""


_KINDS = {
    kind.__name__: kind
    for kind in (ClusterError, NodeError, ReservationTimeoutError, FeedTimeoutError)
}


@contextmanager
def told_to_driver() -> Iterator[None]:
    """In a Spark task: a cluster's error leaves it so that own_error() finds it."""
    try:
        yield
    except ClusterError as error:
        kind = type(error).__name__
        raise TaskError(Failure.of(vars(error), text=str(error), kind=kind)) from error


def own_error(error: BaseException) -> BaseException:
    """The cluster's own error out of Spark's report of a failed task."""
    failure = Failure.find(str(error))
    if failure is not None and failure.kind in _KINDS:
        return _KINDS[failure.kind].of(failure)
    if python := wrong_python(str(error)):
        return ClusterError(python)
    return error if isinstance(error, Exception) else ClusterError(str(error))
