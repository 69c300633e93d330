"""DataFrames of sources, which Spark's tasks read like ranks do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from hearth.sources.rank_rows import RankRows
from hearth.sources.source import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def source_frame(source: Source, parts: int, spark: SparkSession) -> DataFrame:
    """A DataFrame of all rows of a pinned source, in order, in `parts` partitions."""
    from pyspark.sql.pandas.types import from_arrow_schema

    numbers = spark.range(0, parts, 1, parts)
    schema = from_arrow_schema(source.schema())
    return numbers.mapInArrow(partial(read_parts, source, parts), schema)


def read_parts(
    source: Source, parts: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """A task's function: reads the parts whose numbers are in the batches' column `id`."""
    rows = RankRows(source)
    for batch in batches:
        for part in batch.column("id").to_pylist():
            yield from rows.read(part, parts)
