"""TensorFlow on the core: hdfs: paths, and data-parallel training through the core's collective.

    import hearth.tensorflow as hvt

    hvt.init()                                    # all that a node of a cluster needs
    model.compile(hvt.DistributedOptimizer(keras.optimizers.Adam()), "mse")

In a node of a TensorFlow cluster, importing TensorFlow registers hdfs:; other programs call
register_filesystems(). Importing this package does not load TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hearth import on_demand

if TYPE_CHECKING:
    from hearth.tensorflow.backup import BackupAndRestore as BackupAndRestore
    from hearth.tensorflow.filesystems import register_filesystems as register_filesystems
    from hearth.tensorflow.group import init as init
    from hearth.tensorflow.group import is_initialized as is_initialized
    from hearth.tensorflow.group import rank as rank
    from hearth.tensorflow.group import shutdown as shutdown
    from hearth.tensorflow.group import size as size
    from hearth.tensorflow.operations import allgather as allgather
    from hearth.tensorflow.operations import allreduce as allreduce
    from hearth.tensorflow.operations import broadcast as broadcast
    from hearth.tensorflow.operations import broadcast_variables as broadcast_variables
    from hearth.tensorflow.operations import grouped_allreduce as grouped_allreduce
    from hearth.tensorflow.operations import next_step as next_step
    from hearth.tensorflow.steps import in_step as in_step
    from hearth.tensorflow.strategies import use_for_collectives as use_for_collectives
    from hearth.tensorflow.training import CheckpointCallback as CheckpointCallback
    from hearth.tensorflow.training import DistributedGradientTape as DistributedGradientTape
    from hearth.tensorflow.training import DistributedOptimizer as DistributedOptimizer
    from hearth.tensorflow.training import MetricAverageCallback as MetricAverageCallback
    from hearth.tensorflow.training import reduce_gradients as reduce_gradients

_HOMES = {
    ".filesystems": "register_filesystems",
    ".group": "init shutdown is_initialized rank size",
    ".operations": "allreduce grouped_allreduce allgather broadcast broadcast_variables next_step",
    ".training": "reduce_gradients DistributedOptimizer DistributedGradientTape "
    "CheckpointCallback MetricAverageCallback",
    ".backup": "BackupAndRestore",
    ".strategies": "use_for_collectives",
    ".steps": "in_step",
}
if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_demand(__name__, _HOMES)
