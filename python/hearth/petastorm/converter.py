"""Converts a DataFrame, written once as Parquet, to minibatches for PyTorch and TensorFlow."""

from __future__ import annotations

import atexit
import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from hearth.data import parquet
from hearth.errors import invalid
from hearth.files.file_system import files_of
from hearth.petastorm.batches import BatchOptions, ShardBatches

if TYPE_CHECKING:
    from hearth.petastorm.transform import TransformSpec
    from hearth.sources.file_source import FileSource

logger = logging.getLogger(__name__)

# Ignored arguments of Petastorm's readers: here they affect neither the rows nor their order.
_WITHOUT_MEANING = {
    "reader_pool_type",
    "results_queue_size",
    "shuffling_queue_capacity",
    "shuffle_rows",
    "hdfs_driver",
    "storage_options",
    "cache_type",
    "cache_location",
    "cache_size_limit",
    "cache_row_size_estimate",
    "cache_extra_settings",
    "prefetch",
}


class SparkDatasetConverter:
    """A DataFrame's rows in Parquet files, which make_spark_converter() wrote.

    Picklable, so that a function which ranks run can use it; ranks read the files without Spark.

    Attributes:
        cache_dir_url: the folder of the files.
        file_urls: the files.
        dataset_size: number of rows, like len().
    """

    PARENT_CACHE_DIR_URL_CONF = "petastorm.spark.converter.parentCacheDirUrl"

    def __init__(self, cache_dir_url: str, source: FileSource):
        self.cache_dir_url = cache_dir_url
        self._source = source
        self.file_urls = [file.uri for file in source.pinned.files]
        self.dataset_size = sum(split.rows or 0 for split in source.splits())

    def __len__(self) -> int:
        return self.dataset_size

    @contextmanager
    def make_torch_dataloader(
        self,
        batch_size: int = 32,
        num_epochs: int | None = None,
        workers_count: int | None = None,
        **options: Any,
    ) -> Iterator[Any]:
        """A context manager that yields an iterable of batches {column: tensor}; strings and
        binaries are lists.

        Args:
            batch_size: rows of each batch except the last one; a batch may span epochs.
            num_epochs: number of passes over the rows; None: unlimited.
            workers_count: number of threads that prepare batches; None: 4.
            options: cur_shard, shard_count: this rank's shard; the shards' sizes differ by at most
                one row. transform_spec: a TransformSpec. shuffle_row_groups: if False, rows are in
                order; otherwise each epoch reads parts of the files in another order and shuffles
                rows in windows. seed: the seed of that order. Other options of Petastorm's readers
                are ignored.

        Raises:
            ValueError, TypeError: an argument is invalid, or tensors do not support a column.
            Errors of reading the files.
        """
        from hearth.torch.datasets import as_tensor

        def as_tensors(batch: dict[str, Any]) -> dict[str, Any]:
            return {n: v if isinstance(v, list) else as_tensor(v, n) for n, v in batch.items()}

        batches = ShardBatches(
            self._source, _options(batch_size, num_epochs, workers_count, options)
        )
        yield _Converted(batches, as_tensors)

    @contextmanager
    def make_tf_dataset(
        self,
        batch_size: int | None = None,
        prefetch: int | None = None,
        num_epochs: int | None = None,
        workers_count: int | None = None,
        **options: Any,
    ) -> Iterator[Any]:
        """A context manager that yields a tf.data.Dataset of batches (named tuples of tensors).

        The arguments are make_torch_dataloader()'s; a batch_size of None means 32.

        Raises:
            ValueError: like make_torch_dataloader(), or the shard has no row to infer types from.
        """
        from hearth.petastorm.tf_dataset import as_dataset

        yield as_dataset(
            ShardBatches(
                self._source, _options(batch_size or 32, num_epochs, workers_count, options)
            )
        )

    def delete(self) -> None:
        """Deletes the files. Raises OSError or HearthError if the file system refuses."""
        files_of(self.cache_dir_url).remove(self.cache_dir_url)
        _made[:] = [each for each in _made if each[2] is not self]


class _Converted:
    """An iterable of converted batches; each iteration continues with the next epoch."""

    def __init__(self, batches: ShardBatches, convert: Any):
        self._batches, self._convert = batches, convert

    def __iter__(self) -> Iterator[Any]:
        return map(self._convert, self._batches)


def _options(
    batch_size: int, num_epochs: int | None, workers: int | None, options: Mapping[str, Any]
) -> BatchOptions:
    rest = {name: value for name, value in options.items() if name not in _WITHOUT_MEANING}
    transform: TransformSpec | None = rest.pop("transform_spec", None)
    shard = rest.pop("cur_shard", None), rest.pop("shard_count", None)
    if (shard[0] is None) != (shard[1] is None):
        raise invalid(f"cur_shard={shard[0]}, shard_count={shard[1]}: set both, or neither")
    shuffle, seed = rest.pop("shuffle_row_groups", True), rest.pop("seed", None)
    if rest:
        raise TypeError(
            f"{next(iter(rest))} is not supported: filter and select in Spark, before "
            "make_spark_converter()"
        )
    return BatchOptions(
        batch_size,
        num_epochs,
        4 if workers is None else workers,
        shard[0] or 0,
        1 if shard[1] is None else shard[1],
        transform,
        bool(shuffle),
        seed or 0,
    )


# This process's converters by frame and arguments, because equal frames are written once.
_made: list[tuple[Any, Any, SparkDatasetConverter]] = []


def make_spark_converter(
    df: Any,
    parquet_row_group_size_bytes: int = 32 << 20,
    compression_codec: str | None = None,
    dtype: str | None = "float32",
) -> SparkDatasetConverter:
    """Writes a DataFrame as Parquet, into a new folder below the URI that the session's setting
    SparkDatasetConverter.PARENT_CACHE_DIR_URL_CONF names; the driver, executors and ranks must be
    able to read it. Equal frames are written once. The files are deleted by delete() or when this
    process exits.

    Args:
        df: a DataFrame, of classic Spark or Spark Connect.
        parquet_row_group_size_bytes: the row group size of the files.
        compression_codec: the codec of Spark's Parquet writer; None: uncompressed.
        dtype: the type to which floats, doubles, arrays of them and vectors are cast, "float32" or
            "float64"; None: no cast.

    Raises:
        ValueError: the setting is missing, or dtype is invalid.
        Spark's errors while it writes.
    """
    parent = df.sparkSession.conf.get(SparkDatasetConverter.PARENT_CACHE_DIR_URL_CONF, None)
    if not parent:
        raise invalid(
            f"spark.conf has no {SparkDatasetConverter.PARENT_CACHE_DIR_URL_CONF}: set it to the "
            "URI of a folder that the driver and all executors see"
        )
    if dtype not in ("float32", "float64", None):
        raise invalid(f"dtype={dtype!r}: it must be 'float32', 'float64' or None")
    arguments = (parent, parquet_row_group_size_bytes, compression_codec, dtype)
    for frame, former, converter in _made:
        if former == arguments and _same(frame, df):
            return converter
    folder = f"{parent.rstrip('/')}/hearth-{uuid.uuid4().hex}"
    writer = _as_floats(df, dtype).write.option("parquet.block.size", parquet_row_group_size_bytes)
    writer.option("compression", compression_codec or "uncompressed").parquet(folder)
    source = parquet(folder, spool=False).pin(df.sparkSession)
    converter = SparkDatasetConverter(folder, cast("FileSource", source))
    _made.append((df, arguments, converter))
    return converter


def _same(frame: Any, other: Any) -> bool:
    return frame.sparkSession is other.sparkSession and frame.sameSemantics(other)


def _as_floats(df: Any, dtype: str | None) -> Any:
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import functions, types

    columns = []
    for field in df.schema.fields:
        column = functions.col(f"`{field.name}`")
        if isinstance(field.dataType, types.UserDefinedType):
            column = vector_to_array(column, dtype or "float64")
        else:
            column = column.cast(_float_type(field.dataType, dtype))
        columns.append(column.alias(field.name))
    return df.select(*columns)


def _float_type(kind: Any, dtype: str | None) -> Any:
    from pyspark.sql import types

    if isinstance(kind, types.ArrayType):
        return types.ArrayType(_float_type(kind.elementType, dtype), kind.containsNull)
    if dtype is not None and isinstance(kind, types.FloatType | types.DoubleType):
        return types.FloatType() if dtype == "float32" else types.DoubleType()
    return kind


@atexit.register
def _delete_all() -> None:
    for _, _, converter in list(_made):
        try:
            converter.delete()
        except Exception as error:  # the process exits anyway
            logger.warning("%s could not be deleted: %s", converter.cache_dir_url, error)
