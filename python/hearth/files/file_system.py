"""Chooses the client for a URI: the core (local files, HDFS) or a library (schemes of pyarrow and
fsspec). The choice is the same on the driver and on executors.

Hadoop's other schemes are accessed through Spark's JVM on the driver (hadoop_files.py) and through
Hadoop's shell on executors (hadoop_shell.py).
"""

from __future__ import annotations

from hearth.errors import HearthError
from hearth.files.core_files import CoreFiles
from hearth.files.interface import FileSystem
from hearth.files.library_errors import library_refusal
from hearth.files.library_files import LibraryFiles
from hearth.files.uri import CORE_SCHEMES, scheme
from hearth.native.failure import Failure


def files_of(uri: str) -> FileSystem:
    """The client for a URI or local path."""
    return CoreFiles() if by_core(uri) else LibraryFiles()


def by_core(uri: str) -> bool:
    """Whether the core's storage, not a library, serves this URI."""
    return scheme(uri) in ("", "file", *CORE_SCHEMES)


def file_refusal(what: str, uri: str, error: Exception) -> Exception:
    """Returns a one-line HearthError to raise, which says that `what` failed for `uri`, and why."""
    if isinstance(error, HearthError):
        return Failure(f"{what} {uri}: {error}", error.code).error()
    return library_refusal(what, uri, error)
