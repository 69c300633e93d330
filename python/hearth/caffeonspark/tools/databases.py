"""Opens the LMDB that a tool converts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hearth.caffeonspark.flags import FlagError
from hearth.errors import HearthError
from hearth.files.uri import is_local, local_path
from hearth.sources.file_source import FileSource
from hearth.sources.lmdb import LmdbFormat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each part is written as a file, of about a file system's block size.
_PART_BYTES = 128 << 20


def lmdb_source(spark: SparkSession, flags: argparse.Namespace) -> tuple[FileSource, int]:
    """The records of -imageRoot, and the number of parts (-lmdb_partitions, or one per 128 MiB).

    Raises:
        FlagError: -imageRoot is not an LMDB, or cannot be read in place.
    """
    path = local_path(flags.image_root)
    if path is None or not is_local(flags.image_root, spark):
        raise FlagError(
            f"-imageRoot {flags.image_root}: an LMDB is read in place, so it must be on a path "
            "that all hosts see (file:...)"
        )
    try:
        source = FileSource(LmdbFormat(), path).pin()
    except (OSError, ValueError, HearthError) as error:
        raise FlagError(f"-imageRoot {path} cannot be read as an LMDB: {error}") from error
    return source, flags.lmdb_partitions or 1 + source.size // _PART_BYTES


def record_count(source: FileSource) -> int:
    """The number of records in a local LMDB."""
    return sum(split.rows or 0 for split in source.splits())
