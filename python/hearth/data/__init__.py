"""Datasets of files that ranks read themselves, and of files that Spark reads.

`parquet`, `arrow` and `tfrecord` make sources: the driver pins which files there are, and each rank
reads its splits without Spark. Pass them where a dataset is expected, beside DataFrames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hearth.data.image import image
from hearth.sources.arrow import ArrowFormat
from hearth.sources.file_source import FileSource
from hearth.sources.parquet import ParquetFormat
from hearth.sources.tfrecord import TfRecordFormat

if TYPE_CHECKING:
    from hearth.sources.format import Format
    from hearth.sources.source import Source

__all__ = ["arrow", "image", "parquet", "tfrecord"]


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


def arrow(uri: str, columns: Sequence[str] | None = None, *, spool: bool = True) -> Source:
    """Rows of Arrow IPC files (Feather, version 2); arguments as of parquet(), without columns in
    the names of folders."""
    return _source(ArrowFormat(), uri, columns, spool)


def tfrecord(uri: str, columns: Sequence[str] | None = None) -> Source:
    """Rows of TFRecord files of tf.train.Examples, plain or gzip; arguments as of arrow().

    The types of columns are those that saveAsTFRecords left in the folder, else inferred from the
    first examples. A gzip file is read from its beginning, so it is one split.
    """
    return _source(TfRecordFormat(), uri, columns)


def _source(kind: Format, uri: str, columns: Sequence[str] | None, spool: bool = True) -> Source:
    if columns is not None and (isinstance(columns, str) or not columns):
        raise ValueError(f"columns={columns!r} is not a list of names; None means all columns")
    return FileSource(kind, uri, tuple((name, name) for name in columns or ()), spool)
