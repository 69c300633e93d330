"""Files by URI: whether they are local, which client serves them, and small writes."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from hearth.errors import HearthError
from hearth.files.hadoop_files import HadoopFiles
from hearth.files.library_files import LibraryFiles, library_knows
from hearth.files.user_name import user_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

# Schemes of the core's storage, in addition to local files.
CORE_SCHEMES = ("hdfs", "viewfs", "webhdfs", "swebhdfs")

# URIs of these schemes are absolute.
_KEPT_SCHEMES = (
    "adl://",
    "file://",
    "hdfs://",
    "oss://",
    "s3://",
    "s3a://",
    "s3n://",
    "swift://",
    "viewfs://",
    "wasb://",
)


def scheme(uri: str) -> str:
    """The scheme of `uri` in lower case; empty for a plain path."""
    head, colon, _ = uri.partition(":")
    return head.lower() if colon and head.isalnum() else ""


def local_path(uri: str, base: str = "") -> str | None:
    """The absolute local path of a `file:` URI or plain path; None for any other scheme.

    A relative path that does not exist in the working directory is resolved against the folder of
    the file `base`, so that a prototxt can name files next to it.
    """
    if scheme(uri) not in ("", "file"):
        return None
    path = uri
    if scheme(uri) == "file":
        rest = uri[len("file:") :]
        path = unquote(urlparse(uri).path) if rest.startswith("//") else unquote(rest)
    if not os.path.isabs(path) and base and not os.path.exists(path):
        neighbour = Path(base).absolute().parent / path
        if neighbour.exists():
            return str(neighbour)
    if path.startswith("//"):  # as in file:////tmp/x; abspath() would keep two slashes
        path = "/" + path.lstrip("/")
    return os.path.abspath(path)


def is_remote(uri: str) -> bool:
    """Whether a URI names a file of a remote file system."""
    return scheme(uri) not in ("", "file")


def absolute_uri(path: str, default_fs: str, working_dir: str) -> str:
    """Converts `path` to an absolute URI in the file system `default_fs`.

    A path with a scheme is unchanged; "/x" is resolved against the file system's root, "x" against
    the user's home there, or against `working_dir` for the local file system.
    """
    if path.startswith(_KEPT_SCHEMES):
        return path
    if path.startswith("/"):
        return default_fs + path
    if default_fs.startswith(("hdfs://", "viewfs://")):
        return f"{default_fs}/user/{user_name()}/{path}"
    if default_fs.startswith("file:"):
        return f"{default_fs}/{working_dir.lstrip('/')}/{path}"
    logger.warning("unknown scheme %s with relative path: %s", default_fs, path)
    return f"{default_fs}/{path}"


def is_local(uri: str, spark: SparkSession) -> bool:
    """Whether Spark would read `uri` from the local file system."""
    return not is_remote(uri if scheme(uri) else default_file_system(spark))


def whole_uri(path: str, spark: SparkSession) -> str:
    """Adds scheme and host to `path`, by default those of Spark's default file system.

    Raises:
        HearthError: Spark does not support the file system.
    """
    files = serving(HadoopFiles.of(spark), path)
    if files is not None:
        return files.qualified(path)
    return absolute_uri(path, default_file_system(spark).rstrip("/"), os.getcwd())


def serving(files: HadoopFiles | None, uri: str) -> HadoopFiles | LibraryFiles | None:
    """The driver's client for a URI: Spark's file systems if they support the scheme, otherwise a
    library's; None if neither is available (Spark Connect).
    """
    name = scheme(uri)
    if name in ("", "file", *CORE_SCHEMES):
        return files
    if files is None:
        return LibraryFiles() if library_knows(uri) else None
    return files if files.knows(name) else LibraryFiles()


def default_file_system(spark: SparkSession) -> str:
    """The session's `fs.defaultFS`; with Spark Connect, only from the session's settings."""
    if hasattr(spark, "_jsc"):
        return spark._jsc.hadoopConfiguration().get("fs.defaultFS")
    return spark.conf.get("spark.hadoop.fs.defaultFS", "file:///")


def write_text(uri: str, text: str, spark: SparkSession) -> None:
    """Writes a text file, replacing an existing one; remote files through the driver's client.

    Raises:
        OSError: a local file cannot be written.
        HearthError: a remote file cannot be written, or has no client here (Spark Connect).
    """
    if is_local(uri, spark):
        path = Path(local_path(uri) or uri)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    files = serving(HadoopFiles.of(spark), uri)
    if files is None:
        raise HearthError(f"cannot write {uri} through Spark Connect: name a local path (file:...)")
    files.write(uri, text.encode())
