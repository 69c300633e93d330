"""Datasets of files that ranks read themselves, and of files that Spark reads.

`parquet`, `orc`, `arrow`, `tfrecord`, `sequence_file`, `lmdb` and `leveldb` make sources: the
driver pins which files there are, and each rank reads its splits without Spark. So do `delta` and
`iceberg`, of one version of a table, and `table`, of what Spark's catalog has by a name. `csv` and
`json` are read by Spark. Pass them where a dataset is expected, beside DataFrames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hearth.data.image import image
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

__all__ = [
    "arrow",
    "csv",
    "delta",
    "iceberg",
    "image",
    "json",
    "leveldb",
    "lmdb",
    "orc",
    "parquet",
    "sequence_file",
    "table",
    "tfrecord",
]


def parquet(uri: str, columns: Sequence[str] | None = None, *, spool: bool = True) -> Source:
    """Rows of Parquet files.

    Args:
        uri: a file, or a folder with all its files and those in folders below; hidden ones (_x, .x)
            do not count. A path, or a URI of HDFS or of any scheme that pyarrow or fsspec knows.
            Names of folders may hold columns (day=1).
        columns: which to read; None: all.
        spool: False: ranks read the files anew in each epoch, and keep nothing on their disks; for
            files that are larger than these.

    Returns:
        A source; nothing is looked at before its pin().
    """
    return _source(ParquetFormat(), uri, columns, spool)


def orc(uri: str, columns: Sequence[str] | None = None, *, spool: bool = True) -> Source:
    """Rows of ORC files; arguments as of parquet(), without columns in the names of folders."""
    return _source(OrcFormat(), uri, columns, spool)


def arrow(uri: str, columns: Sequence[str] | None = None, *, spool: bool = True) -> Source:
    """Rows of Arrow IPC files (Feather, version 2); arguments as of orc()."""
    return _source(ArrowFormat(), uri, columns, spool)


def tfrecord(uri: str, columns: Sequence[str] | None = None) -> Source:
    """Rows of TFRecord files of tf.train.Examples, plain or gzip; arguments as of orc().

    The types of columns are those that saveAsTFRecords left in the folder, else inferred from the
    first examples. A gzip file is read from its beginning, so it is one split.
    """
    return _source(TfRecordFormat(), uri, columns)


def sequence_file(uri: str, columns: Sequence[str] | None = None) -> Source:
    """Rows of SequenceFiles whose keys and values are BytesWritables; arguments as of orc().

    The columns are those of CaffeOnSpark's images (id, label, channels, height, width, encoded,
    data), which are all that are read where none are named; and the records' own `key` and `value`.
    """
    return _source(SequenceFileFormat(), uri, tuple(IMAGE_TYPES) if columns is None else columns)


def lmdb(uri: str, columns: Sequence[str] | None = None) -> Source:
    """Rows of an LMDB of Caffe's Datums, in the order of its keys.

    Args:
        uri: its folder, or its data file; under a path that all hosts see, or in HDFS.
        columns: of id, label, channels, height, width, encoded, data; None: all.

    Returns:
        A source; nothing is looked at before its pin().
    """
    return _source(LmdbFormat(), uri, columns)


def leveldb(uri: str, columns: Sequence[str] | None = None) -> Source:
    """The same of a LevelDB, whose folder is under a path that all hosts see. Needs the Caffe
    engine: hearth-spark[caffe]."""
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
        uri: its folder, as of parquet(), or its name in Spark's catalog.
        columns: which to read; None: all.
        version: neither this nor `timestamp`: the newest version that there is at the pin.
        timestamp: the version that was the newest at this time, which has a zone.
        spool: as of parquet().

    Returns:
        A source; nothing is looked at before its pin().
    """
    if version is not None and (not isinstance(version, int) or version < 0):
        raise ValueError(f"version={version!r} is not the number of a version")
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
        table: its name in a catalog of Spark or pyiceberg, its folder where that has a
            version-hint.text, its metadata file, or pyiceberg's Table.
        columns: which to read; None: all.
        snapshot_id: neither this nor `as_of`: the snapshot that is current at the pin.
        as_of: the snapshot that was current at this time, which has a zone.
        spool: as of parquet().

    Returns:
        A source; nothing is looked at before its pin().
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
    """Rows of a table by its name in Spark's catalog: of Delta or Iceberg as delta() and iceberg()
    read it, or of Parquet or ORC files, Hive's too, with the partitions that the catalog has
    ([docs/tables.md](docs/tables.md)).

    Args:
        name: table, schema.table or catalog.schema.table.
        columns: which to read; None: all.
        version: a Delta version or the id of an Iceberg snapshot; None: the newest.
        timestamp: the version that was the newest at this time, which has a zone.
        spool: as of parquet().

    Returns:
        A source; the driver's session is asked when it is pinned.
    """
    _check_one(version=version, timestamp=timestamp)
    return CatalogTable(name, _pairs(columns), spool, version, timestamp)


def csv(uri: str, columns: Sequence[str] | None = None, **options: Any) -> SparkFiles:
    """Rows of CSV files, which Spark reads.

    Args:
        uri: as Spark takes it.
        columns: which to read; None: all.
        options: of Spark's reader: header=True, inferSchema=True, schema="x double, y int".

    Returns:
        Files that the driver turns into a DataFrame.
    """
    return _spark_files("csv", uri, columns, options)


def json(uri: str, columns: Sequence[str] | None = None, **options: Any) -> SparkFiles:
    """The same of JSON files, a row in each line."""
    return _spark_files("json", uri, columns, options)


def _spark_files(
    kind: str, uri: str, columns: Sequence[str] | None, options: Mapping[str, Any]
) -> SparkFiles:
    _check_columns(columns)
    given = tuple(sorted(options.items(), key=lambda option: option[0]))
    return SparkFiles(kind, uri, None if columns is None else tuple(columns), given)


def _check_columns(columns: Sequence[str] | None) -> None:
    if columns is not None and (isinstance(columns, str) or not columns):
        raise ValueError(f"columns={columns!r} is not a list of names; None means all columns")


def _source(kind: Format, uri: str, columns: Sequence[str] | None, spool: bool = True) -> Source:
    return FileSource(kind, uri, _pairs(columns), spool)


def _pairs(columns: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    _check_columns(columns)
    return tuple((name, name) for name in columns or ())


def _check_one(**given: Any) -> None:
    if all(value is not None for value in given.values()):
        raise ValueError(f"{' and '.join(given)} exclude each other: give one of them")
