"""Makes tf.distribute reduce between workers through the collective instead of gRPC."""

from __future__ import annotations

from typing import Any

from hearth import HearthError
from hearth.tensorflow import group


def use_for_collectives() -> None:
    """Makes MultiWorkerMirroredStrategy reduce gradients through the collective.

    For programs with tf_keras or custom loops; call it before the strategy is created. Calls
    init(). The strategy still starts TensorFlow's servers, which distribute initial values of
    variables. TensorFlow still runs reductions that are not over one device per worker.

    Raises:
        HearthError: this TensorFlow's launcher of collectives differs from the one in 2.16 to 2.21.
        Errors of init().
    """
    group.init()
    from tensorflow import distribute
    from tensorflow.python.distribute import cross_device_utils

    launcher = cross_device_utils.CollectiveReplicaLauncher
    if getattr(launcher, "by_hearth", False):
        return
    for name in ("all_reduce", "batch_all_reduce", "_all_gather"):
        if not hasattr(launcher, name):
            raise HearthError(
                f"TensorFlow's CollectiveReplicaLauncher has no {name}(): "
                "use_for_collectives() supports TensorFlow 2.16 to 2.21"
            )
    launcher.all_reduce = _all_reduce_by(launcher.all_reduce)
    launcher.batch_all_reduce = _batch_all_reduce_by(launcher.batch_all_reduce)
    launcher._all_gather = _all_gather_by(launcher._all_gather)
    launcher.by_hearth = True
    strategy = distribute.MultiWorkerMirroredStrategy
    strategy.run = _each_a_step(strategy.run)


def _is_ours(launcher: Any) -> bool:
    return group.is_initialized() and launcher._group_size == group.size()


def _each_a_step(theirs: Any) -> Any:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if group.is_initialized():
            group.ops().hearth_step()
        return theirs(self, *args, **kwargs)

    return run


def _all_reduce_by(theirs: Any) -> Any:
    def all_reduce(
        self: Any, input_tensor: Any, control_input: Any = None, options: Any = None
    ) -> Any:
        if not _is_ours(self):
            return theirs(self, input_tensor, control_input, options)
        import tensorflow as tf

        with tf.device(self._device), self._control_input(control_input):
            tensor = tf.convert_to_tensor(input_tensor)
            [found] = group.ops().hearth_all_reduce(inputs=[tensor], reduction=0, wire=0, names=[])
            return found

    return all_reduce


def _batch_all_reduce_by(theirs: Any) -> Any:
    def batch_all_reduce(self: Any, input_tensor_packs: Any, options: Any = None) -> Any:
        if not _is_ours(self):
            return theirs(self, input_tensor_packs, options)
        import tensorflow as tf

        from hearth.tensorflow.training import reduce_gradients

        # TensorFlow would concatenate a pack's tensors, by default all tensors, and split the
        # result. Here they are reduced in place, in the order of the packs, which start with the
        # last layers.
        tensors = [tensor for pack in input_tensor_packs for tensor in pack]
        with tf.device(self._device):
            return reduce_gradients(tensors[::-1], "sum")[::-1]

    return batch_all_reduce


def _all_gather_by(theirs: Any) -> Any:
    def all_gather(self: Any, input_tensor: Any, options: Any = None) -> Any:
        if not _is_ours(self):
            return theirs(self, input_tensor, options)
        import tensorflow as tf

        with tf.device(self._device):
            tensor = tf.convert_to_tensor(input_tensor)
            own = tf.cast(tf.shape(tensor)[:1], tf.int64)
            return group.ops().hearth_all_gather(
                input=tensor, rows=tf.tile(own, [group.size()]), names=[]
            )

    return all_gather
