"""PyTorch programs on Spark's executors: clusters, feeds of tensors, a distributor.

    from hearth.torch import TorchCluster

    with TorchCluster.run(spark, main_fun, args, workers=2) as cluster:
        cluster.train(frame, epochs=3)

In main_fun(args, ctx), torch.distributed.init_process_group(ctx.backend) is all that a program
needs to find the others. Importing this package loads neither pyspark nor PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "TorchCluster": "hearth.torch.torch_cluster",
    "TorchContext": "hearth.torch.context",
    "TorchDistributor": "hearth.torch.distributor",
    "in_step": "hearth.torch.steps",
    "ClusterError": "hearth.cluster.errors",
    "FeedTimeoutError": "hearth.cluster.errors",
    "NodeError": "hearth.cluster.errors",
    "ReservationTimeoutError": "hearth.cluster.errors",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hearth.torch' has no attribute {name!r}")
