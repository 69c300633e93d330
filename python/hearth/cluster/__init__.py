"""Runs a Python main function on nodes in Spark's executors, independent of any framework.

    from hearth import cluster

    with cluster.run(spark, main_fun, args, nodes=2) as nodes:
        nodes.train(frame, epochs=3)

`driver/`, `task/` and `node/` contain the code of the three sides; each package may import only
those listed after it. The modules of this folder are shared by all sides: channels, messages,
errors, roles.

Importing this package loads neither pyspark nor the native core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hearth import on_demand

if TYPE_CHECKING:
    from hearth.cluster.driver.cluster import Cluster as Cluster
    from hearth.cluster.driver.cluster import run as run
    from hearth.cluster.errors import ClusterError as ClusterError
    from hearth.cluster.errors import FeedTimeoutError as FeedTimeoutError
    from hearth.cluster.errors import NodeError as NodeError
    from hearth.cluster.errors import ReservationTimeoutError as ReservationTimeoutError
    from hearth.cluster.node.context import NodeContext as NodeContext
    from hearth.cluster.node.data_feed import DataFeed as DataFeed

_HOMES = {
    ".driver.cluster": "Cluster run",
    ".node.context": "NodeContext",
    ".node.data_feed": "DataFeed",
    ".errors": "ClusterError FeedTimeoutError NodeError ReservationTimeoutError",
}
if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_demand(__name__, _HOMES)
