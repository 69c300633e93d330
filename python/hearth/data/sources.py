"""Creates sources from files and tables: `parquet`, `delta` and so on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hearth.errors import invalid
from hearth.sources.arrow import ArrowFormat
from hearth.sources.file_source import FileSource
from hearth.sources.image_keys import IMAGE_TYPES
from hearth.sources.leveldb import LevelDbFormat
from hearth.sources.lmdb import LmdbFormat
from hearth.sources.orc import OrcFormat
from hearth.sources.parquet import ParquetFormat
from hearth.sources.sequence_file import SequenceFileFormat
from hearth.sources.spark_files import SparkFiles
from hearth.sources.tables.catalog import CatalogTable
from hearth.sources.tables.delta import DeltaSource
from hearth.sources.tables.iceberg import IcebergSource
from hearth.sources.tfrecord import TfRecordFormat

if TYPE_CHECKING:
    from datetime import datetime

    from hearth.sources.format import Format
    from hearth.sources.source import Source


def parquet(uri: str, columns: Sequence[str] | None = None, *, spool: bool = True) -> Source:
    """Rows of Parquet files.

    Args:
        uri: a path, or a URI of HDFS or of any scheme that pyarrow or fsspec supports. It names a
            file, or a folder, which is read with its subfolders except hidden files (_x, .x).
            Folder names may contain columns (day=1).
        columns: the columns to read; None: all.
        spool: whether ranks spool the rows to their disks. If False, they read the files again in
            each epoch, for data that is larger than the disks.

    Returns:
        A source; its files are first accessed by pin().
    """
    return _source(ParquetFormat(), uri, columns, spool)


def orc(uri: str, columns: Sequence[str] | None = None, *, spool: bool = True) -> Source:
    """Rows of ORC files. The arguments are parquet()'s, but folder names cannot contain columns."""
    return _source(OrcFormat(), uri, columns, spool)


def arrow(uri: str, columns: Sequence[str] | None = None, *, spool: bool = True) -> Source:
    """Rows of Arrow IPC files (Feather, version 2). The arguments are orc()'s."""
    return _source(ArrowFormat(), uri, columns, spool)


def tfrecord(uri: str, columns: Sequence[str] | None = None) -> Source:
    """Rows of TFRecord files of tf.train.Examples, plain or gzip. The arguments are orc()'s.

    Column types come from the schema that saveAsTFRecords wrote to the folder, or otherwise from
    the first examples. A gzip file is one split, because it can only be read from its beginning.
    """
    return _source(TfRecordFormat(), uri, columns)


def sequence_file(uri: str, columns: Sequence[str] | None = None) -> Source:
    """Rows of SequenceFiles whose keys and values are BytesWritables. The arguments are orc()'s.

    The columns are the fields of CaffeOnSpark's images (id, label, channels, height, width,
    encoded, data), which are read by default, and the records' raw `key` and `value`.
    """
    return _source(SequenceFileFormat(), uri, tuple(IMAGE_TYPES) if columns is None else columns)


def lmdb(uri: str, columns: Sequence[str] | None = None) -> Source:
    """Rows of an LMDB of Caffe's Datums, in key order.

    Args:
        uri: the LMDB's folder or data file, on a path that all hosts see, or in HDFS.
        columns: some of id, label, channels, height, width, encoded, data; None: all.

    Returns:
        A source; its files are first accessed by pin().
    """
    return _source(LmdbFormat(), uri, columns)


def leveldb(uri: str, columns: Sequence[str] | None = None) -> Source:
    """Like lmdb(), for a LevelDB on a path that all hosts see. Needs the Caffe engine:
    hearth-spark[caffe]."""
    return _source(LevelDbFormat(), uri, columns)


def delta(
    uri: str,
    columns: Sequence[str] | None = None,
    *,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    spool: bool = True,
) -> Source:
    """Rows of one version of a Delta table ([docs/tables.md](docs/tables.md)). Needs
    hearth-spark[delta] on the driver.

    Args:
        uri: the table's folder, as for parquet(), or its name in Spark's catalog.
        columns: the columns to read; None: all.
        version: the version to read. Without `version` and `timestamp`, the version that is the
            newest when the source is pinned.
        timestamp: selects the version that was the newest at this time (with a time zone).
        spool: as for parquet().

    Returns:
        A source; its files are first accessed by pin().
    """
    if version is not None and (not isinstance(version, int) or version < 0):
        raise invalid(f"version={version!r} is not a version number")
    _check_one(version=version, timestamp=timestamp)
    return DeltaSource(uri, _pairs(columns), spool, version, timestamp)


def iceberg(
    table: Any,
    columns: Sequence[str] | None = None,
    *,
    snapshot_id: int | None = None,
    as_of: str | datetime | None = None,
    spool: bool = True,
) -> Source:
    """Rows of one snapshot of an Iceberg table ([docs/tables.md](docs/tables.md)). Needs
    hearth-spark[iceberg] on the driver.

    Args:
        table: the table's name in a catalog of Spark or pyiceberg, its folder if that contains a
            version-hint.text, its metadata file, or pyiceberg's Table.
        columns: the columns to read; None: all.
        snapshot_id: the snapshot to read. Without `snapshot_id` and `as_of`, the snapshot that is
            current when the source is pinned.
        as_of: selects the snapshot that was current at this time (with a time zone).
        spool: as for parquet().

    Returns:
        A source; its files are first accessed by pin().
    """
    _check_one(snapshot_id=snapshot_id, as_of=as_of)
    if not hasattr(table, "metadata_location"):
        return IcebergSource(str(table), _pairs(columns), spool, snapshot_id, as_of)
    uri = ".".join(table.name())
    return IcebergSource(uri, _pairs(columns), spool, snapshot_id, as_of, table)


def table(
    name: str,
    columns: Sequence[str] | None = None,
    *,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    spool: bool = True,
) -> Source:
    """Rows of a table in Spark's catalog ([docs/tables.md](docs/tables.md)): a Delta or Iceberg
    table, read like with delta() or iceberg(), or a table of Parquet or ORC files, including
    Hive's, with the partitions that the catalog lists.

    Args:
        name: table, schema.table or catalog.schema.table.
        columns: the columns to read; None: all.
        version: a Delta version or the id of an Iceberg snapshot; None: the newest.
        timestamp: selects the version that was the newest at this time (with a time zone).
        spool: as for parquet().

    Returns:
        A source; pin() queries the driver's session.
    """
    _check_one(version=version, timestamp=timestamp)
    return CatalogTable(name, _pairs(columns), spool, version, timestamp)


def csv(uri: str, columns: Sequence[str] | None = None, **options: Any) -> SparkFiles:
    """Rows of CSV files, read by Spark.

    Args:
        uri: any path or URI that Spark reads.
        columns: the columns to read; None: all.
        options: options of Spark's reader: header=True, inferSchema=True, schema="x double, y int".

    Returns:
        Files that the driver turns into a DataFrame.
    """
    return _spark_files("csv", uri, columns, options)


def json(uri: str, columns: Sequence[str] | None = None, **options: Any) -> SparkFiles:
    """Like csv(), for JSON files with one row per line."""
    return _spark_files("json", uri, columns, options)


def _spark_files(
    kind: str, uri: str, columns: Sequence[str] | None, options: Mapping[str, Any]
) -> SparkFiles:
    _check_columns(columns)
    given = tuple(sorted(options.items(), key=lambda option: option[0]))
    return SparkFiles(kind, uri, None if columns is None else tuple(columns), given)


def _check_columns(columns: Sequence[str] | None) -> None:
    if columns is not None and (isinstance(columns, str) or not columns):
        raise invalid(f"columns={columns!r} is not a list of names; None means all columns")


def _source(kind: Format, uri: str, columns: Sequence[str] | None, spool: bool = True) -> Source:
    return FileSource(kind, uri, _pairs(columns), spool)


def _pairs(columns: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    _check_columns(columns)
    return tuple((name, name) for name in columns or ())


def _check_one(**given: Any) -> None:
    if all(value is not None for value in given.values()):
        raise invalid(f"{' and '.join(given)} are mutually exclusive: give one of them")
