"""A node's parts of Parquet, Arrow and TFRecord files that lie elsewhere, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hearth.rows.far_input import check, check_columns, open_part
from hearth.rows.file_parts import Part
from hearth.rows.parquet_pieces import ParquetPieces
from hearth.rows.rank_files import Count

if TYPE_CHECKING:
    import pyarrow as pa

ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
_RECORD_ROWS = 4096  # or fewer: read() bounds the bytes


def reads_whole(uri: str) -> bool:
    """Whether nodes can read such a file from its beginning only."""
    return not uri.endswith(".parquet")


def read_parts(
    parts: Sequence[Part], first: Sequence[str], columns: Sequence[str], count: Count
) -> Iterator[pa.RecordBatch]:
    """The rows of the parts, in order. Memory: a row group, or a batch.

    Args:
        parts: of files of one format, which their names tell.
        first: files that tell the schema of TFRecords.
        columns: which to read; none: all.
        count: is told of what was read.

    Raises:
        ValueError: a column that is not there, or a file that is not as the driver saw it.
        OSError: a file cannot be read.
    """
    if not parts:
        return
    if parts[0].uri.endswith(".parquet"):
        read = ParquetPieces().read_part
    elif parts[0].uri.endswith(ARROW_SUFFIXES):
        read = _read_arrow
    else:
        yield from _read_records(parts, first, columns, count)
        return
    for part in parts:
        yield from read(part, columns, count)


def _read_arrow(part: Part, columns: Sequence[str], count: Count) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with open_part(part, count) as source:
        reader = pa.ipc.open_file(source)
        check_columns(part.uri, reader.schema.names, columns)
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            yield batch.select(list(columns)) if columns else batch


def _read_records(
    parts: Sequence[Part], first: Sequence[str], columns: Sequence[str], count: Count
) -> Iterator[pa.RecordBatch]:
    from pyspark.sql.types import StructType

    from hearth.files.tfrecord_files import open_records, schema_of
    from hearth.files.tfrecord_schema import arrow_columns, feature_kind

    schema = schema_of(first)
    if columns:
        check_columns(first[0], schema.names, columns)
        schema = StructType([schema[name] for name in columns])
    wanted = [(field.name, feature_kind(field.dataType)) for field in schema.fields]
    for part in parts:
        check(part)
        reader = open_records(part.uri)
        while (found := reader.read(wanted, _RECORD_ROWS)) is not None:
            yield arrow_columns(schema, *found)
        count(part.size, part.near)
