"""Converts DataFrames to TFRecord files of tf.train.Example and back, without a Hadoop jar.

    dfutil.saveAsTFRecords(df, "hdfs:///rows")        # or a local folder
    df = dfutil.loadTFRecords(sc, "hdfs:///rows")

Files of saveAsTFRecords are read with the schema that saveAsTFRecords writes to their folder. For
other files the schema is inferred, as in TensorFlowOnSpark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from hearth.errors import invalid
from hearth.files import tfrecord_files
from hearth.files.forwarded_tokens import ForwardedTokens, token_scope
from hearth.files.tfrecord_schema import (
    arrow_columns,
    check_types,
    feature_kind,
    infer_fields,
    inferred_type,
)
from hearth.files.uri import is_local
from hearth.rows.dense_arrays import fitted
from hearth.spark.arrow_map import map_in_arrow
from hearth.spark.driver_python import use_driver_python
from hearth.spark.task_resources import attempt_id, partition_id
from hearth.spark.token_forwarder import forward_tokens

# The DataFrames that loadTFRecords returned, by object identity.
loadedDF: dict[Any, str] = {}

_BATCH_ROWS = 4096


def isLoadedDF(df: Any) -> bool:
    """Whether `df` is the very object that loadTFRecords returned."""
    return any(known is df for known in loadedDF)


def saveAsTFRecords(df: Any, output_dir: str, *, round_doubles: bool = False) -> None:
    """Writes the rows as TFRecord files part-r-00000, ..., one per partition.

    Columns may be numbers, booleans, strings, binaries, and arrays of these; a null becomes a
    missing feature.

    The folder may be on any file system that pyarrow (hdfs, s3, gs, ...) or fsspec knows. If Spark
    runs a task several times, the first attempt to finish provides the file. The files appear once
    all are complete; a failed job leaves no files.

    Args:
        round_doubles: write double columns as 32-bit floats, the only floats that an example
            supports.

    Raises:
        ValueError: a column has an unsupported type or name, or the file system is unknown.
        FileExistsError: the folder already has files.
    """
    check_types(df.schema, round_doubles)
    spark = df.sparkSession
    # Creating the folder needs the delegation tokens, too.
    tokens = None if is_local(output_dir, spark) else forward_tokens(spark)
    target = tfrecord_files.prepare_folder(spark, output_dir, df.schema.json())
    task = partial(_write_partition, target, tokens)
    try:
        files = map_in_arrow(df, task, "file string").collect()
    except BaseException:
        tfrecord_files.abandon(target)
        raise
    tfrecord_files.finish(target, [row.file for row in files])


def loadTFRecords(
    sc: Any,
    input_dir: str,
    binary_features: Sequence[str] = [],
) -> Any:
    """The rows of a folder of TFRecord files, plain or gzip.

    Args:
        sc: the SparkContext, or a SparkSession.
        input_dir: the folder, or one file.
        binary_features: bytes features to read as binaries; others are strings. Not needed for
            files of saveAsTFRecords.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    spark = sc if hasattr(sc, "createDataFrame") else SparkSession(sc)
    use_driver_python(spark)
    schema_text = tfrecord_files.read_schema(spark, input_dir)
    files = tfrecord_files.list_files(spark, input_dir)
    if schema_text is not None:
        schema = StructType.fromJson(schema_text)
    else:
        examples = tfrecord_files.first_examples(spark, files)
        schema = infer_fields(examples, binary_features)
        if examples and not schema.fields:
            raise invalid(f"the examples in {input_dir} have no features to make columns of")
    if not files:
        frame = spark.createDataFrame([], schema)
    else:
        frame = tfrecord_files.frame_of(spark, files).mapInArrow(
            partial(_read_files, schema.json()), schema
        )
    loadedDF[frame] = input_dir
    return frame


def _write_partition(
    target: str, tokens: ForwardedTokens | None, batches: Iterator[Any]
) -> Iterator[Any]:
    attempt = partition_id(), attempt_id()
    with token_scope(tokens), tfrecord_files.new_file(target, *attempt) as writer:
        for batch in batches:
            _check_floats(batch)
            writer.write(batch)
    yield pa.record_batch({"file": pa.array([writer.name], pa.string())})


def _check_floats(batch: Any) -> None:
    """Raises ValueError for a double outside the range of 32-bit floats; the message names its
    column."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        values = column.flatten() if pa.types.is_list(column.type) else column
        if pa.types.is_float64(values.type):
            fitted(values.drop_null().to_numpy(), "float32", name)


def _read_files(schema_json: str, batches: Iterator[Any]) -> Iterator[Any]:
    import json

    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(schema_json))
    wanted = [(field.name, feature_kind(field.dataType)) for field in schema.fields]
    for batch in batches:
        for reader in tfrecord_files.open_readers(batch):
            while (found := reader.read(wanted, _BATCH_ROWS)) is not None:
                yield arrow_columns(schema, *found)


def toTFExample(
    dtypes: Sequence[tuple[str, str]],
) -> Callable[[Iterable[Any]], Iterator[tuple[bytearray, None]]]:
    """Returns a function that converts an iterator of rows to (serialized tf.train.Example, None)
    pairs.

    Args:
        dtypes: (column, Spark type name) pairs, as in DataFrame.dtypes.
    """
    import tensorflow as tf

    makers = {
        "float": lambda values: tf.train.Feature(float_list=tf.train.FloatList(value=values)),
        "int64": lambda values: tf.train.Feature(int64_list=tf.train.Int64List(value=values)),
        "bytes": lambda values: tf.train.Feature(
            bytes_list=tf.train.BytesList(
                value=[v.encode() if isinstance(v, str) else bytes(v) for v in values]
            )
        ),
    }
    kinds = [(name, feature_kind(kind), kind.startswith("array<")) for name, kind in dtypes]

    def encode(iterator: Iterable[Any]) -> Iterator[tuple[bytearray, None]]:
        for row in iterator:
            features = {
                name: makers[kind](row[name] if many else [row[name]])
                for name, kind, many in kinds
                if row[name] is not None
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            yield bytearray(example.SerializeToString()), None

    return encode


def fromTFExample(
    iter: Iterable[tuple[Any, Any]],
    binary_features: Sequence[str] = [],
) -> list[Any]:
    """Converts (serialized tf.train.Example, anything) pairs to rows, with the columns ordered by
    name."""
    import tensorflow as tf
    from pyspark.sql import Row

    rows = []
    for serialized, _ in iter:
        example = tf.train.Example.FromString(bytes(serialized))
        row = {}
        for name, feature in sorted(example.features.feature.items()):
            values = list(getattr(feature, feature.WhichOneof("kind") or "bytes_list").value)
            if feature.HasField("bytes_list") and name not in binary_features:
                values = [value.decode() for value in values]
            row[name] = values if len(values) > 1 else (values[0] if values else None)
        rows.append(Row(**row))
    return rows


def infer_schema(
    example: Any,
    binary_features: Sequence[str] = [],
) -> Any:
    """The StructType of a tf.train.Example, with the columns ordered by name."""
    from pyspark.sql.types import StructField, StructType

    fields = []
    for name, feature in sorted(example.features.feature.items()):
        kind = (feature.WhichOneof("kind") or "bytes_list").removesuffix("_list")
        count = len(getattr(feature, f"{kind}_list").value)
        fields.append(
            StructField(name, inferred_type(name, kind, count > 1, binary_features), True)
        )
    return StructType(fields)
