"""Applies saved models to Arrow batches. Each Python worker loads a model once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hearth.errors import invalid
from hearth.files.uri import local_path
from hearth.rows import results
from hearth.rows.applied import ModelColumns, applied
from hearth.rows.dense_arrays import fitted
from hearth.rows.model_thread import in_model_thread, kept
from hearth.spark.driver_python import use_driver_python
from hearth.tensorflowonspark import model_files, tensor_names
from hearth.tensorflowonspark.tensor_names import TensorNames

if TYPE_CHECKING:
    import numpy as np


_TEXTS: dict[type, str] = {str: "string", bytes: "binary"}


@dataclass(frozen=True)
class ModelSpec:
    """A model, and the mapping of columns to its tensors; sent in Spark's task closure.

    `digest`: hash of the model's files when transform() was called; empty: not checked.
    """

    path: str
    signature: str
    tags: tuple[str, ...]
    inputs: Mapping[str, str]  # tensor by column
    outputs: Mapping[str, str]  # column by tensor; empty: all outputs under their names
    batch_size: int
    # Names that the tasks use: of the columns that stay, and of `inputs` if they differ.
    kept: tuple[str, ...] = ()
    read: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""


class LoadedModel:
    """A model as a function of named arrays. `columns`: (output, its column) pairs, ordered by the
    requested names."""

    def __init__(self, spec: ModelSpec):
        """Loads the model. Raises ValueError for an unknown signature or tensor."""
        self.path = spec.path
        if spec.path.endswith(".keras"):
            names = self._load_keras(spec)
        else:
            names = self._load_saved_model(spec)
        self.inputs = {
            column: _find("input", tensor, self.shapes, names.inputs, spec.path)
            for column, tensor in spec.inputs.items()
        }
        chosen = spec.outputs or {name: name for name in self.outputs}
        self.columns = [
            (_find("output", tensor, self.outputs, names.outputs, spec.path), column)
            for tensor, column in sorted(chosen.items())
        ]

    def _load_saved_model(self, spec: ModelSpec) -> TensorNames:
        import tensorflow as tf

        self._model = tf.saved_model.load(spec.path, tags=list(spec.tags))
        signatures = self._model.signatures
        if spec.signature not in signatures:
            raise invalid(
                f"the model at {spec.path} has no signature '{spec.signature}': use one of "
                f"{', '.join(signatures)}"
            )
        call = signatures[spec.signature]
        self.shapes = {
            name: (value.shape, value.dtype)
            for name, value in call.structured_input_signature[1].items()
        }
        self.outputs = dict(call.structured_outputs)
        self._call: Callable[..., Mapping[str, Any]] = lambda arrays: call(**arrays)
        return tensor_names.read(spec.path, self.outputs)

    def _load_keras(self, spec: ModelSpec) -> TensorNames:
        import keras
        import tensorflow as tf

        model = keras.saving.load_model(local_path(spec.path) or spec.path, compile=False)
        self.shapes = {
            value.name: (tf.TensorShape(value.shape), tf.as_dtype(value.dtype))
            for value in model.inputs
        }
        names = [value.name for value in model.inputs]
        self.outputs = {
            f"output_{i}": tf.TensorSpec(value.shape, value.dtype)
            for i, value in enumerate(model.outputs)
        }
        function = tf.function(lambda values: model(values, training=False))

        def call(arrays: Mapping[str, Any]) -> Mapping[str, Any]:
            found = function([arrays[name] for name in names])
            found = tf.nest.flatten(found)
            return dict(zip(self.outputs, found, strict=True))

        self._call = call
        return tensor_names.names_of(model) or TensorNames()

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs in the order of `columns`, for columns of a minibatch.

        Raises:
            ValueError: a value or shape does not fit a tensor, or an output does not have one value
                per row.
        """
        rows = len(next(iter(arrays.values())))
        tensors = {self.inputs[name]: self._array(array, name) for name, array in arrays.items()}
        found = self.predict(tensors)
        for tensor, _ in self.columns:
            if found[tensor].ndim == 0 or len(found[tensor]) != rows:
                raise invalid(
                    f"output '{tensor}' of the model at {self.path} has shape "
                    f"{found[tensor].shape} for {rows} rows: its first dimension must be the rows"
                )
        return [found[tensor] for tensor, _ in self.columns]

    def _array(self, array: np.ndarray, column: str) -> np.ndarray:
        """Converts a column of a minibatch to the type and shape of its tensor."""
        shape, kind = self.shapes[self.inputs[column]]
        if (array.dtype == object) != (kind.name == "string"):
            first = next(iter(array.flat), None)
            has = array.dtype if array.dtype != object else _TEXTS.get(type(first), "object")
            raise invalid(
                f"the column {column!r} ({has}) cannot be the input "
                f"'{self.inputs[column]}' of type {kind.name}: cast the column in Spark"
            )
        if array.dtype != object:
            array = fitted(array, kind.as_numpy_dtype, column)
        if shape.rank is None:
            return array
        try:
            return array.reshape(len(array), *(-1 if d is None else d for d in shape[1:]))
        except ValueError:
            raise invalid(
                f"the column {column!r} has rows of shape {array.shape[1:]}, but the input "
                f"'{self.inputs[column]}' expects {shape[1:]}"
            ) from None

    def predict(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs for a minibatch, by tensor; the first dimension is the rows."""
        import tensorflow as tf

        tensors = {
            name: tf.convert_to_tensor(array, self.shapes[name][1])
            for name, array in arrays.items()
        }
        return {name: value.numpy() for name, value in self._call(tensors).items()}


def _find(
    what: str, name: str, known: Mapping[str, Any], names: tuple[tuple[str, ...], ...], path: str
) -> str:
    found = tensor_names.find(name, known, names)
    if found is None:
        raise invalid(f"the model at {path} has no {what} '{name}'; it has {', '.join(known)}")
    return found


def _model(spec: ModelSpec) -> LoadedModel:
    """The model, cached in this process by the content of its files.

    Raises:
        ValueError: the files differ from those that transform() found.
    """
    digest = spec.digest or model_files.digest(spec.path)
    # Columns and batch size do not affect the model.
    key = repr(replace(spec, digest=digest, kept=(), read={}, batch_size=0))
    return kept("tensorflow", key, lambda: _loaded(spec, digest))


def _loaded(spec: ModelSpec, digest: str) -> LoadedModel:
    if model_files.digest(spec.path) != digest:
        raise invalid(
            f"the model at {spec.path} is not the one that transform() found: it was replaced, "
            "or hosts have different files. Call transform() again"
        )
    model = LoadedModel(spec)
    if model_files.digest(spec.path) != digest:
        raise invalid(f"the model at {spec.path} was replaced while it was loaded: try again")
    return model


# Fields that describe an output: its column, its type and the files' digest; or only an error.
_DESCRIBED = ("name", "type", "digest", "refused")


def described(spec: ModelSpec, spark: Any) -> tuple[ModelSpec, list[Any]]:
    """The spec for the current model, and the fields of its outputs.

    Loads the model in a task, not in the driver.

    Raises:
        ValueError: the model lacks the signature or tensor.
    """
    from pyspark.sql.types import StructField, _parse_datatype_string

    use_driver_python(spark)
    columns = ", ".join(f"{name} string" for name in _DESCRIBED)
    rows = spark.range(1).mapInArrow(_describe(spec), columns).collect()
    for row in rows:
        if row.refused is not None:
            raise invalid(row.refused)
    fields = [StructField(row.name, _parse_datatype_string(row.type), True) for row in rows]
    return replace(spec, digest=rows[0].digest), fields


def _describe(spec: ModelSpec) -> Callable[..., Iterator[Any]]:
    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([(name, pa.string()) for name in _DESCRIBED])
        for _ in batches:
            try:
                digest = model_files.digest(spec.path)
                model = in_model_thread(partial(_model, replace(spec, digest=digest)))
                found = [
                    {"name": name, "type": _spark_type(model.outputs[tensor]), "digest": digest}
                    for tensor, name in model.columns
                ]
            except ValueError as error:
                # Not raised here, because Spark would retry the failed task, and load TensorFlow
                # each time.
                found = [{"refused": str(error)}]
            yield pa.RecordBatch.from_pylist(found, schema)

    return describe


def _spark_type(output: Any) -> str:
    """A scalar type for shape (rows,), otherwise nested arrays, even for shape (rows, 1)."""
    return results.spark_type(*_kind_of(output))


def _kind_of(output: Any) -> tuple[str, int]:
    kind = output.dtype.name if hasattr(output.dtype, "name") else str(output.dtype)
    return kind, max(0, (output.shape.rank or 0) - 1)


def predict(spec: ModelSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of transform()."""
    load = partial(_model, spec)
    model = in_model_thread(load)
    made = pa.schema(
        (name, results.arrow_type(*_kind_of(model.outputs[tensor])))
        for tensor, name in model.columns
    )
    inputs = tuple(spec.inputs)
    read = tuple(spec.read.get(name, name) for name in inputs)
    columns = ModelColumns(inputs, read, spec.kept, spec.batch_size)
    return applied(columns, made, batches, load)
