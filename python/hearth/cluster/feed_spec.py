"""Parameters of a feed job's tasks."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hearth.cluster import roles
from hearth.cluster.channel import Message
from hearth.errors import invalid


@dataclass(frozen=True)
class FeedSpec:
    """One feed job, the same for all its tasks; sent in Spark's task closure."""

    token: str
    nodes: tuple[Message, ...]  # nodes that take rows
    queue: str
    timeout_s: float
    feed: str  # unique name of this job
    mode: str = "train"  # or "inference"
    format: str = "pickle"  # or "arrow"
    batched: bool = True  # each pickle is a list of rows
    keep: bool = False  # the node replays the rows later
    safe: frozenset[int] = frozenset()  # partitions that are already delivered
    # Whether the driver's Ledger, in which the job must be open, decides which attempt of a
    # partition sends its rows.
    fenced: bool = False
    # Seconds without a heartbeat after which a task considers a node hung; ten times as many before
    # the first heartbeat. 0: no limit.
    beat_s: float = 0.0

    def __repr__(self) -> str:  # the token must not reach a log
        return f"FeedSpec(queue={self.queue}, mode={self.mode})"


def feed_spec(
    cluster_info: Sequence[Mapping[str, Any]], qname: str, timeout_s: float, **options: Any
) -> FeedSpec:
    """A FeedSpec for the nodes that take rows; `cluster_info`: a Cluster's `nodes`."""
    nodes = fed_nodes(cluster_info)
    if not nodes or "feed_port" not in nodes[0]:
        raise invalid(
            "cluster_info names no node of a running cluster that takes rows: pass the `nodes` of "
            "a running Cluster, or call Cluster.train() or Cluster.inference() instead"
        )
    return FeedSpec(
        token=str(nodes[0]["authkey"]),
        nodes=tuple({k: v for k, v in node.items() if k != "authkey"} for node in nodes),
        queue=qname,
        timeout_s=feed_timeout_or_never(timeout_s),
        **{"feed": secrets.token_hex(8), **options},
    )


def fed_nodes(cluster_info: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The nodes that take rows."""
    return [node for node in cluster_info if node["job_name"] not in roles.UNFED_ROLES]


def feed_timeout_or_never(seconds: float) -> float:
    """-1 means no limit, as in the API."""
    return 1e9 if seconds < 0 else float(seconds)
