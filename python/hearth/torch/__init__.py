"""PyTorch programs on Spark's executors: clusters, feeds of tensors, a distributor.

    from hearth.torch import TorchCluster

    with TorchCluster.run(spark, main_fun, args, workers=2) as cluster:
        cluster.train(frame, epochs=3)

In main_fun(args, ctx), torch.distributed.init_process_group(ctx.backend) is all that a program
needs to find the others. Importing this package loads neither pyspark nor PyTorch.
"""

from __future__ import annotations

from hearth import on_demand

_HOMES = {
    "TorchCluster": ".torch_cluster",
    "TorchContext": ".context",
    "TorchDistributor": ".distributor",
    "in_step": ".steps",
    "name_gradients": ".names",
    "naming": ".names",
    "ClusterError": "hearth.cluster.errors",
    "FeedTimeoutError": "hearth.cluster.errors",
    "NodeError": "hearth.cluster.errors",
    "ReservationTimeoutError": "hearth.cluster.errors",
}
__all__ = [*_HOMES]
__getattr__ = on_demand(__name__, _HOMES)
