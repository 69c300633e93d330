"""Saved models applied to Arrow batches: loaded once per Python worker, outputs by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hearth.storage import local_path

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


@dataclass(frozen=True)
class ModelSpec:
    """Which model, and which columns are its tensors; travels in Spark's task closure."""

    path: str
    signature: str
    tags: tuple[str, ...]
    inputs: Mapping[str, str]  # tensor by column
    outputs: Mapping[str, str]  # column by tensor; empty: all outputs by their own names
    batch_size: int
    keep: bool


class LoadedModel:
    """A model as a function of named arrays."""

    def __init__(self, spec: ModelSpec):
        """Loads it. Raises ValueError for a signature or tensor that it does not have."""
        import tensorflow as tf

        if spec.path.endswith(".keras"):
            self._load_keras(spec)
        else:
            self._model = tf.saved_model.load(spec.path, tags=list(spec.tags))
            signatures = self._model.signatures
            if spec.signature not in signatures:
                raise ValueError(
                    f"the model at {spec.path} has no signature '{spec.signature}', but: "
                    f"{', '.join(signatures)}"
                )
            call = signatures[spec.signature]
            self.shapes = {
                name: (value.shape, value.dtype)
                for name, value in call.structured_input_signature[1].items()
            }
            self.outputs = dict(call.structured_outputs)
            self._call: Callable[..., Mapping[str, Any]] = lambda arrays: call(**arrays)
        for tensor in spec.inputs.values():
            if tensor not in self.shapes:
                raise ValueError(
                    f"the model at {spec.path} has no input '{tensor}', but: "
                    f"{', '.join(self.shapes)}"
                )
        for tensor in spec.outputs:
            if tensor not in self.outputs:
                raise ValueError(
                    f"the model at {spec.path} has no output '{tensor}', but: "
                    f"{', '.join(self.outputs)}"
                )

    def _load_keras(self, spec: ModelSpec) -> None:
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
            found = found if isinstance(found, (list, tuple)) else [found]
            return dict(zip(self.outputs, found, strict=True))

        self._call = call

    def predict(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs for a minibatch: first dimension rows, flat columns in the input's shape."""
        import tensorflow as tf

        tensors = {}
        for name, array in arrays.items():
            shape, kind = self.shapes[name]
            if shape.rank is not None:
                array = array.reshape(len(array), *(-1 if d is None else d for d in shape[1:]))
            tensors[name] = tf.convert_to_tensor(array, None if array.dtype == object else kind)
            tensors[name] = tf.cast(tensors[name], kind) if kind != tf.string else tensors[name]
        return {name: value.numpy() for name, value in self._call(tensors).items()}


_loaded: dict[str, LoadedModel] = {}  # by the spec's text


def _model(spec: ModelSpec) -> LoadedModel:
    """The model, kept by this worker; another one takes its place."""
    key = repr(spec)
    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = LoadedModel(spec)
    return _loaded[key]


def output_columns(spec: ModelSpec, outputs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(tensor, column) of each output column, in the order of the tensors' names."""
    chosen = spec.outputs or {name: name for name in outputs}
    return sorted(chosen.items())


def result_schema(spec: ModelSpec, kept: Any) -> Any:
    """The StructType of transform()'s result. Loads the model in a task, not in the driver."""
    from pyspark.sql.types import StructField, StructType, _parse_datatype_string

    spark = kept.sparkSession
    rows = spark.range(1).mapInArrow(_describe(spec), "name string, type string").collect()
    fields = list(kept.schema.fields) if spec.keep else []
    fields += [StructField(row.name, _parse_datatype_string(row.type), True) for row in rows]
    return StructType(fields)


def _describe(spec: ModelSpec) -> Callable[..., Iterator[Any]]:
    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for _ in batches:
            outputs = _model(spec).outputs
            columns = output_columns(spec, outputs)
            types = [_spark_type(outputs[tensor]) for tensor, _ in columns]
            yield pa.record_batch({"name": [name for _, name in columns], "type": types})

    return describe


def _spark_type(output: Any) -> str:
    scalar = {
        "float16": "float",
        "bfloat16": "float",
        "float32": "float",
        "float64": "double",
        "int32": "int",
        "int64": "bigint",
        "bool": "boolean",
        "string": "string",
    }.get(output.dtype.name if hasattr(output.dtype, "name") else str(output.dtype), "bigint")
    rank = output.shape.rank
    flat = rank is None or rank <= 1 or (rank == 2 and output.shape[1] == 1)
    return scalar if flat else f"array<{scalar}>"


def predict(spec: ModelSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of transform(): a minibatch never crosses an Arrow batch."""
    from hearth.tensorflowonspark.columns import column_to_numpy

    model = _model(spec)
    columns = output_columns(spec, model.outputs)
    for batch in batches:
        for start in range(0, batch.num_rows, spec.batch_size):
            rows = batch.slice(start, spec.batch_size)
            arrays = {
                tensor: column_to_numpy(rows.column(column))
                for column, tensor in spec.inputs.items()
            }
            found = model.predict(arrays)
            yield _result(rows, spec, [(name, found[tensor]) for tensor, name in columns], model)


def _result(
    rows: pa.RecordBatch, spec: ModelSpec, outputs: list[tuple[str, np.ndarray]], model: LoadedModel
) -> pa.RecordBatch:
    import pyarrow as pa

    names = list(rows.schema.names) if spec.keep else []
    arrays = list(rows.columns) if spec.keep else []
    types = {
        name: _spark_type(model.outputs[tensor])
        for tensor, name in output_columns(spec, model.outputs)
    }
    for name, values in outputs:
        if values.dtype == object:
            values = [v.decode() for v in values.reshape(-1)]
            arrays.append(pa.array(values, pa.string()))
        else:
            flat = pa.array(values.reshape(-1))
            many = types[name].startswith("array<")
            width = values.size // max(1, len(values))
            arrays.append(
                pa.ListArray.from_arrays(range(0, values.size + 1, max(1, width)), flat)
                if many
                else flat
            )
        names.append(name)
    return pa.RecordBatch.from_arrays(arrays, names=names)
