"""What a cluster raises: always typed, never an exit of the driver."""

from __future__ import annotations


class ClusterError(RuntimeError):
    """A cluster, or one of its nodes, failed; the message names the node, its host and why."""


class NodeError(ClusterError):
    """A node failed: its own traceback, exit status or signal is in the message."""


class ReservationTimeoutError(ClusterError, TimeoutError):
    """Not all nodes came in time; the message says which, and why that may be."""


class FeedTimeoutError(ClusterError, TimeoutError):
    """A node took no rows for `feed_timeout` seconds."""
