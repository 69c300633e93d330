"""Small differences between versions of TensorFlow, in one place."""

from __future__ import annotations

import os
import tempfile


def export_saved_model(model, export_dir, is_chief=False):
    """Writes a Keras model (Keras 3 or tf_keras) as a SavedModel.

    Only the chief writes to `export_dir`; what another worker saves, which a distribution strategy
    may need it to do, goes to a temporary folder.
    """
    if is_chief:
        _export(model, export_dir)
        return
    with tempfile.TemporaryDirectory(prefix="worker_model-") as folder:
        _export(model, os.path.join(folder, "worker_model"))


def _export(model, export_dir: str) -> None:
    if hasattr(model, "export"):
        model.export(export_dir)
    else:
        model.save(export_dir, save_format="tf")


def disable_auto_shard(options):
    """Lets every worker see all elements of its tf.data.Dataset, as a feed of Spark's needs."""
    import tensorflow as tf

    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF


def is_gpu_available():
    """Whether TensorFlow sees a GPU."""
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))
