"""PyTorch programs on Spark's executors: clusters, feeds of tensors, a distributor.

    from hearth.torch import TorchCluster

    with TorchCluster.run(spark, main_fun, args, workers=2) as cluster:
        cluster.train(frame, epochs=3)

In main_fun(args, ctx), torch.distributed.init_process_group(ctx.backend) connects the ranks.
Importing this package loads neither pyspark nor PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hearth import on_demand

if TYPE_CHECKING:
    from hearth.cluster.errors import ClusterError as ClusterError
    from hearth.cluster.errors import FeedTimeoutError as FeedTimeoutError
    from hearth.cluster.errors import NodeError as NodeError
    from hearth.cluster.errors import ReservationTimeoutError as ReservationTimeoutError
    from hearth.torch.context import TorchContext as TorchContext
    from hearth.torch.distributor import TorchDistributor as TorchDistributor
    from hearth.torch.names import name_gradients as name_gradients
    from hearth.torch.names import naming as naming
    from hearth.torch.steps import in_step as in_step
    from hearth.torch.torch_cluster import TorchCluster as TorchCluster

_HOMES = {
    ".torch_cluster": "TorchCluster",
    ".context": "TorchContext",
    ".distributor": "TorchDistributor",
    ".steps": "in_step",
    ".names": "name_gradients naming",
    "hearth.cluster.errors": "ClusterError FeedTimeoutError NodeError ReservationTimeoutError",
}
if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_demand(__name__, _HOMES)
