"""TensorFlow on the core: hdfs:, and training on several nodes by the core's collective.

    import hearth.tensorflow as hvt

    hvt.init()                                    # in a node of a cluster, this is all
    model.compile(hvt.DistributedOptimizer(keras.optimizers.Adam()), "mse")

A node of a TensorFlow cluster has hdfs: once it imports TensorFlow; other programs call
register_filesystems(). Importing this package does not load TensorFlow.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "register_filesystems": "filesystems",
    "init": "group",
    "shutdown": "group",
    "is_initialized": "group",
    "rank": "group",
    "size": "group",
    "allreduce": "operations",
    "grouped_allreduce": "operations",
    "allgather": "operations",
    "broadcast": "operations",
    "broadcast_variables": "operations",
    "reduce_gradients": "training",
    "DistributedOptimizer": "training",
    "DistributedGradientTape": "training",
    "MetricAverageCallback": "training",
    "use_for_collectives": "strategies",
    "in_step": "steps",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"hearth.tensorflow.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'hearth.tensorflow' has no attribute {name!r}")
