"""Tables of images as Parquet files, written by the Python tasks that read the images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from hearth.caffeonspark.tools.parts import part_file, task_folder, write_folder
from hearth.spark.task_resources import partition_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    # Converts a task's partition to the rows to write.
    Rows = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# Maps Spark's codec names to Arrow's. Spark writes files with other codecs.
_CODECS = {name: name for name in ("none", "snappy", "gzip", "zstd", "brotli")}
_CODECS["uncompressed"] = "none"
_GROUP_BYTES = 32 << 20
_ENCRYPTION = "spark.hadoop.parquet.crypto.factory.class"


def write_table(frame: DataFrame, rows: Rows, schema: str, output: str, form: str) -> None:
    """Writes `rows` of each partition of `frame` into the new folder `output`.

    `schema`: the rows' schema as a Spark DDL string. `form`: the file format. Tasks write plain
    Parquet files. Spark writes other formats, unknown codecs and encrypted files, and to file
    systems that only Hadoop supports.

    Raises:
        FlagError: the folder has files.
    """
    spark = frame.sparkSession
    named = spark.conf.get("spark.sql.parquet.compression.codec", None) or "snappy"
    codec = _CODECS.get(named.lower())
    plain = form == "parquet" and codec and spark.conf.get(_ENCRYPTION, None) is None
    target = task_folder(spark, output) if plain else None
    if target is None or codec is None:
        frame.mapInArrow(rows, schema).write.format(form).save(output)
        return
    task = partial(_write_part, rows, _arrow_schema(frame, schema), target, codec)
    write_folder(target, frame.mapInArrow(task, "none int").count)


def _arrow_schema(frame: DataFrame, schema: str) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.sparkSession.createDataFrame([], schema).schema)


def _write_part(
    rows: Rows, schema: pa.Schema, target: str, codec: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    # A dictionary or statistics of the images in "data" would only cost space.
    small = [field.name for field in schema if field.name != "data"]
    options = {"compression": codec, "use_dictionary": small, "write_statistics": small}
    with (
        part_file(target, partition_id(), ".parquet") as file,
        pq.ParquetWriter(file, schema, **options) as writer,
    ):
        for group in _groups(rows(batches)):
            writer.write_table(pa.Table.from_batches(group).cast(schema))
    yield from ()


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Groups batches into row groups of some megabytes, to limit a task's memory."""
    group, held = [], 0
    for batch in batches:
        group.append(batch)
        held += batch.nbytes
        if held >= _GROUP_BYTES:
            yield group
            group, held = [], 0
    if group:
        yield group
