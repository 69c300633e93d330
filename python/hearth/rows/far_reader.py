"""Rows of Parquet, Arrow and TFRecord files that lie elsewhere, through the core's storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hearth.files.core_input import CoreInput
from hearth.files.hadoop_shell import use_core_as_hadoop_user
from hearth.files.library_files import LibraryFiles, LibraryInput
from hearth.files.uri import CORE_SCHEMES, scheme
from hearth.rows.file_parts import Part
from hearth.rows.group_input import GroupInput, ranges_of, start_of
from hearth.rows.rank_files import Count

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
_BATCH_ROWS = 4096
_RECORD_ROWS = 4096  # or fewer: read() bounds the bytes


def reads_whole(uri: str) -> bool:
    """Whether such a file can be read from its beginning only."""
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
        read = _read_parquet
    elif parts[0].uri.endswith(ARROW_SUFFIXES):
        read = _read_arrow
    else:
        yield from _read_records(parts, first, columns, count)
        return
    for part in parts:
        yield from read(part, columns, count)


def _open(part: Part, count: Count) -> Any:
    """The part's file, open for pyarrow, which tells `count` of what it reads."""
    return _opened(_checked(part), part, count)


def _opened(file: Any, part: Part, count: Count) -> Any:
    import pyarrow as pa

    return pa.PythonFile(CoreInput(file, lambda size: count(size, part.near)), mode="r")


def _checked(part: Part) -> Any:
    file = _input(part.uri)
    _check(part)
    return file


def _by_core(uri: str) -> bool:
    return scheme(uri) in ("", "file", *CORE_SCHEMES)


def _input(uri: str) -> Any:
    from hearth.native._core import InputFile

    if not _by_core(uri):
        return LibraryInput(uri)
    use_core_as_hadoop_user()
    return InputFile(uri)


def _stat(uri: str) -> tuple[int, int] | None:
    """(bytes, seconds since 1970 when it was written last); None where it is gone."""
    from hearth.native._core import stat_file

    if _by_core(uri):
        status = stat_file(uri)
        return status and (status.size, status.modified_ms // 1000)
    info = LibraryFiles().stat(uri)
    return info and (info.size, (info.mtime_ns or 0) // 1_000_000_000)


def _check(part: Part) -> None:
    found = _stat(part.uri)
    if found is None:
        what = "is gone"
    elif found[0] != part.size:
        what = f"has {found[0]} bytes instead of {part.size}"
    elif part.modified_s and found[1] != part.modified_s:
        what = "was written again"
    else:
        return
    raise ValueError(
        f"{part.uri} {what}: nodes read the files that the driver found first; put the file back, "
        "or start the program anew"
    )


def _read_parquet(part: Part, columns: Sequence[str], count: Count) -> Iterator[pa.RecordBatch]:
    """Row groups that begin in the part."""
    import pyarrow.parquet as pq

    ahead = GroupInput(_checked(part))
    with _opened(ahead, part, count) as source:
        file = pq.ParquetFile(source)
        groups = groups_in(part, file.metadata)
        ranges = [ranges_of(file.metadata.row_group(group), columns) for group in groups]
        for number in ahead.each(ranges):
            yield from _read_group(part.uri, file, groups[number], columns)


@dataclass(frozen=True)
class RowGroup:
    """Rows [begin, end) of a row group of a part's file; by default all. `metadata`: of its footer,
    where that has been read."""

    part: Part
    number: int
    metadata: pq.FileMetaData | None = None
    begin: int = 0
    end: int | None = None


def row_groups(part: Part, count: Count) -> list[RowGroup]:
    """Those that begin in the part; raises as read_parts() does."""
    import pyarrow.parquet as pq

    with _open(part, count) as source:
        metadata = pq.ParquetFile(source).metadata
    return [RowGroup(part, number, metadata) for number in groups_in(part, metadata)]


def read_group(group: RowGroup, columns: Sequence[str], count: Count) -> Iterator[pa.RecordBatch]:
    """Its rows, in the same batches each time; as read_parts()."""
    import pyarrow.parquet as pq

    with _open(group.part, count) as source:
        file = pq.ParquetFile(source, metadata=group.metadata, pre_buffer=True)
        yield from _between(group, _read_group(group.part.uri, file, group.number, columns))


def _between(group: RowGroup, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    at = 0
    for batch in batches:
        if group.end is not None and at >= group.end:
            return
        first = max(group.begin - at, 0)
        last = batch.num_rows if group.end is None else min(group.end - at, batch.num_rows)
        at += batch.num_rows
        if first < last:
            yield batch.slice(first, last - first)


def _read_group(
    uri: str, file: pq.ParquetFile, group: int, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """One by one, as pre_buffer would fetch all groups that are asked for."""
    _check_columns(uri, file.schema_arrow.names, columns)
    for batch in file.iter_batches(_BATCH_ROWS, [group], list(columns) or None):
        yield batch.select(list(columns)) if columns else batch


def groups_in(part: Part, metadata: pq.FileMetaData) -> list[int]:
    """The numbers of the row groups that begin in the part."""
    starts = [_start(metadata.row_group(i)) for i in range(metadata.num_row_groups)]
    for group, start in enumerate(starts):
        if not 0 <= start < part.size:  # it would be in nobody's part
            raise ValueError(
                f"{part.uri} is damaged: it says that its row group {group} begins at byte "
                f"{start} of {part.size}; write it again"
            )
    return [i for i, start in enumerate(starts) if part.begin <= start < part.end]


def far_types(uri: str) -> dict[str, str]:
    """The columns of a Parquet file and their types in Arrow; raises OSError or ValueError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pa.PythonFile(CoreInput(_input(uri)), mode="r") as source:
        return {field.name: str(field.type) for field in pq.read_schema(source)}


def _start(group: pq.RowGroupMetaData) -> int:
    """Where a row group's first byte lies."""
    return min((start_of(group.column(i)) for i in range(group.num_columns)), default=0)


def _read_arrow(part: Part, columns: Sequence[str], count: Count) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with _open(part, count) as source:
        reader = pa.ipc.open_file(source)
        _check_columns(part.uri, reader.schema.names, columns)
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            yield batch.select(list(columns)) if columns else batch


def _check_columns(uri: str, known: Sequence[str], columns: Sequence[str]) -> None:
    for name in columns:
        if name not in known:
            raise ValueError(f"column '{name}' is not in {uri}, which has: {', '.join(known)}")


def _read_records(
    parts: Sequence[Part], first: Sequence[str], columns: Sequence[str], count: Count
) -> Iterator[pa.RecordBatch]:
    from pyspark.sql.types import StructType

    from hearth.files.tfrecord_files import open_records, schema_of
    from hearth.files.tfrecord_schema import arrow_columns, feature_kind

    schema = schema_of(first)
    if columns:
        _check_columns(first[0], schema.names, columns)
        schema = StructType([schema[name] for name in columns])
    wanted = [(field.name, feature_kind(field.dataType)) for field in schema.fields]
    for part in parts:
        _check(part)
        reader = open_records(part.uri)
        while (found := reader.read(wanted, _RECORD_ROWS)) is not None:
            yield arrow_columns(schema, *found)
        count(part.size, part.near)
