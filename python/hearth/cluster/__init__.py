"""Nodes that run a Python main function on Spark's executors; knows no framework.

    from hearth import cluster

    with cluster.run(spark, main_fun, args, nodes=2) as nodes:
        nodes.train(frame, epochs=3)

Importing this package loads neither pyspark nor the native core.
"""

from __future__ import annotations

from hearth import on_demand

_HOMES = {
    "Cluster": ".cluster",
    "run": ".cluster",
    "NodeContext": ".context",
    "DataFeed": ".data_feed",
    "ClusterError": ".errors",
    "FeedTimeoutError": ".errors",
    "NodeError": ".errors",
    "ReservationTimeoutError": ".errors",
}
__all__ = [*_HOMES]
__getattr__ = on_demand(__name__, _HOMES)
