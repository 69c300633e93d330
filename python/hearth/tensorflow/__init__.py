"""TensorFlow on the core: hdfs:, and training on several nodes by the core's collective.

    import hearth.tensorflow as hvt

    hvt.init()                                    # in a node of a cluster, this is all
    model.compile(hvt.DistributedOptimizer(keras.optimizers.Adam()), "mse")

A node of a TensorFlow cluster has hdfs: once it imports TensorFlow; other programs call
register_filesystems(). Importing this package does not load TensorFlow.
"""

from __future__ import annotations

from hearth import on_demand

_HOMES = {
    "register_filesystems": ".filesystems",
    "init": ".group",
    "shutdown": ".group",
    "is_initialized": ".group",
    "rank": ".group",
    "size": ".group",
    "allreduce": ".operations",
    "grouped_allreduce": ".operations",
    "allgather": ".operations",
    "broadcast": ".operations",
    "broadcast_variables": ".operations",
    "reduce_gradients": ".training",
    "DistributedOptimizer": ".training",
    "DistributedGradientTape": ".training",
    "CheckpointCallback": ".training",
    "MetricAverageCallback": ".training",
    "use_for_collectives": ".strategies",
    "in_step": ".steps",
}
__all__ = [*_HOMES]
__getattr__ = on_demand(__name__, _HOMES)
