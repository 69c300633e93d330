"""Names of a Keras model's inputs and outputs.

Keras 2 names them after layers ("dense_input", "dense_1"), Keras 3 by numbers and tensors
("output_0", "keras_tensor"). A model that compat.export_saved_model() writes has the layers' names,
and a file that lists the other names of the same tensors.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from hearth.errors import invalid

# TensorFlow reserves the folder "assets.extra" of a SavedModel for other programs.
_FOLDER, _FILE = "assets.extra", "tensor_names.json"


@dataclass(frozen=True)
class TensorNames:
    """All names of each tensor, in the model's order."""

    inputs: tuple[tuple[str, ...], ...] = ()
    outputs: tuple[tuple[str, ...], ...] = ()


def find(name: str, known: Collection[str], groups: tuple[tuple[str, ...], ...]) -> str | None:
    """The name in `known` of the tensor that is called `name` in one of `groups`; None if there is
    none."""
    if name in known:
        return name
    others = next((group for group in groups if name in group), ())
    return next((other for other in others if other in known), None)


def names_of(model: Any) -> TensorNames | None:
    """The names of a Keras model's tensors; names of layers come first.

    None if the model has no graph of layers, or returns its outputs in a dict.
    """
    inputs, outputs = getattr(model, "inputs", None), getattr(model, "outputs", None)
    if not inputs or not outputs or isinstance(getattr(model, "output", None), dict):
        return None
    layers = getattr(model, "output_names", None) or [model.layers[-1].name]
    if len(layers) != len(outputs) or len(set(layers)) != len(layers):
        return None
    return TensorNames(
        tuple(_input_names(model, tensor) for tensor in inputs),
        tuple((layer, f"output_{i}") for i, layer in enumerate(layers)),
    )


def _input_names(model: Any, tensor: Any) -> tuple[str, ...]:
    """The names of an input; a Sequential model's unnamed input gets Keras 2's name,
    "dense_input"."""
    own = tensor.name
    if not hasattr(model, "add"):
        return (own,)
    by_layer = f"{model.layers[0].name}_input"
    return (by_layer, own) if own.startswith("keras_tensor") else (own, by_layer)


def write(names: TensorNames, folder: str) -> None:
    """Writes the names to a SavedModel's folder, on any file system of TensorFlow."""
    import tensorflow as tf

    tf.io.gfile.makedirs(f"{folder}/{_FOLDER}")
    with tf.io.gfile.GFile(f"{folder}/{_FOLDER}/{_FILE}", "w") as file:
        file.write(json.dumps({"inputs": names.inputs, "outputs": names.outputs}))


def read(folder: str, outputs: Collection[str]) -> TensorNames:
    """The names that write() wrote. Without that file, a single output is also called "output_0".

    Raises:
        ValueError: the file is damaged.
    """
    import tensorflow as tf

    path = f"{folder}/{_FOLDER}/{_FILE}"
    if not tf.io.gfile.exists(path):
        only = tuple(outputs) if len(outputs) == 1 else ()
        return TensorNames((), ((*only, "output_0"),) if only else ())
    with tf.io.gfile.GFile(path) as file:
        text = file.read()
    try:
        found = json.loads(text)
        groups = [tuple(tuple(map(str, g)) for g in found[key]) for key in ("inputs", "outputs")]
    except (ValueError, TypeError, KeyError) as error:
        raise invalid(f"{path} is damaged ({error!r}): remove it, or export again") from error
    return TensorNames(*groups)
