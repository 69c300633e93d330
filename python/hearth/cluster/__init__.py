"""Nodes that run a Python main function on Spark's executors; knows no framework.

    from hearth import cluster

    with cluster.run(spark, main_fun, args, nodes=2) as nodes:
        nodes.train(frame, epochs=3)

Importing this package loads neither pyspark nor the native core.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "Cluster": "cluster",
    "run": "cluster",
    "NodeContext": "context",
    "DataFeed": "data_feed",
    "ClusterError": "errors",
    "FeedTimeoutError": "errors",
    "NodeError": "errors",
    "ReservationTimeoutError": "errors",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"hearth.cluster.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'hearth.cluster' has no attribute {name!r}")
