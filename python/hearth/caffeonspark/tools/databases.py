"""The LMDB that a tool converts."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from hearth.caffeonspark.flags import FlagError
from hearth.files.uri import is_local, local_path
from hearth.rows.file_rows import DatabaseRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A part becomes a file: about the block of a file system.
_PART_BYTES = 128 << 20


def lmdb_rows(spark: SparkSession, flags: argparse.Namespace) -> DatabaseRows:
    """The records of -imageRoot, in -lmdb_partitions parts or as many as its size asks for.

    Raises:
        FlagError: it is none, or lies where it cannot be read in place.
    """
    path = local_path(flags.image_root)
    if path is None or not is_local(flags.image_root, spark):
        raise FlagError(
            f"-imageRoot {flags.image_root}: an LMDB is read in place, so it must lie under a path "
            "that all hosts see (file:...)"
        )
    file = os.path.join(path, "data.mdb") if os.path.isdir(path) else path
    try:
        parts = flags.lmdb_partitions or 1 + os.path.getsize(file) // _PART_BYTES
        return DatabaseRows(path, parts).pin()
    except OSError as error:
        raise FlagError(f"-imageRoot {path} is no LMDB: {error.strerror or error}") from None
    except ValueError as error:
        raise FlagError(str(error)) from None
