"""What a feed job tells its tasks of the nodes."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from hearth.cluster import roles
from hearth.cluster.feed_task import FeedSpec


def feed_spec(
    cluster_info: Sequence[Mapping[str, Any]], qname: str, timeout_s: float, **options: Any
) -> FeedSpec:
    """A FeedSpec for the nodes that take rows; `cluster_info` as a Cluster's `nodes`."""
    nodes = [node for node in cluster_info if node["job_name"] not in roles.FED_ROLES_EXCEPT]
    if not nodes or "feed_port" not in nodes[0]:
        raise ValueError(
            "this cluster_info is not of a running cluster with a worker: feed "
            "the nodes by its train() and inference()"
        )
    return FeedSpec(
        token=str(nodes[0]["authkey"]),
        nodes=tuple({k: v for k, v in node.items() if k != "authkey"} for node in nodes),
        queue=qname,
        timeout_s=feed_timeout_or_never(timeout_s),
        **{"feed": secrets.token_hex(8), **options},
    )


def feed_timeout_or_never(seconds: float) -> float:
    """-1 means no limit, as in the API."""
    return 1e9 if seconds < 0 else float(seconds)


def partition_id() -> int:
    """The partition of the Spark task that runs this; 0 outside of Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0
