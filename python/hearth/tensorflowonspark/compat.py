"""Compatibility between versions of TensorFlow."""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
from typing import Any

from hearth.tensorflowonspark import tensor_names


def export_saved_model(model: Any, export_dir: str, is_chief: bool = False) -> None:
    """Writes a Keras model (Keras 3 or tf_keras) as a SavedModel.

    The outputs of its signature are named after their layers ("dense_1"), and so is the input of a
    Sequential model ("dense_input"). A model without a graph of layers keeps Keras's names.

    Only the chief writes to `export_dir`. Other workers write to a temporary folder, because under
    a distribution strategy they may have to save, too.
    """
    if is_chief:
        _export(model, export_dir)
        return
    with tempfile.TemporaryDirectory(prefix="worker_model-") as folder:
        _export(model, os.path.join(folder, "worker_model"))


def _export(model: Any, export_dir: str) -> None:
    names = tensor_names.names_of(model)
    if "save_format" in inspect.signature(model.save).parameters:
        model.save(export_dir, save_format="tf")  # Keras 2 names tensors after layers
    elif names is None or sys.modules["keras"].backend.backend() != "tensorflow":
        model.export(export_dir)
    else:
        _export_by_layers(model, export_dir, names)
    if names is not None:
        tensor_names.write(names, export_dir)


def _export_by_layers(model: Any, export_dir: str, names: tensor_names.TensorNames) -> None:
    """Like Keras 3's model.export(), except for the names in the serving signature."""
    import keras

    inputs = [
        keras.Input(tensor.shape[1:], tensor.shape[0], tensor.dtype, name=known[0])
        for tensor, known in zip(model.inputs, names.inputs, strict=True)
    ]
    sequential = isinstance(model, keras.Sequential)
    given = inputs[0] if sequential else keras.tree.pack_sequence_as(model.input, inputs)
    outputs = keras.tree.flatten(model(given, training=False))
    by_layer = dict(zip((known[0] for known in names.outputs), outputs, strict=True))
    served = keras.Model(inputs, by_layer)
    archive = keras.export.ExportArchive()
    whole = model.inputs if sequential else [model.input]
    archive.track_and_add_endpoint("serve", model, input_signature=whole)
    archive.track_and_add_endpoint("serving_default", served, input_signature=[inputs])
    archive.write_out(export_dir, verbose=False)


def disable_auto_shard(options: Any) -> None:
    """Lets every worker see all elements of its tf.data.Dataset, as a Spark feed requires."""
    import tensorflow as tf

    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF


def is_gpu_available() -> bool:
    """Whether TensorFlow sees a GPU."""
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))


def __getattr__(name: str) -> Any:
    """`tf`, which programs import from here; loaded on first use."""
    if name == "tf":
        import tensorflow as tf

        return tf
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
