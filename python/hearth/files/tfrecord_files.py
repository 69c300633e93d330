"""TFRecord files in any file system of Spark. The core writes local files and files in HDFS. Other
files are first written locally, then copied by pyarrow's file systems. Files are read through
Hadoop's file systems.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from hearth.errors import ExistsError, NotFoundError, invalid
from hearth.files.arrow_files import arrow_file_system
from hearth.files.library_files import library_system
from hearth.files.local_folders import spill_folder
from hearth.files.uri import CORE_SCHEMES, is_local, local_path, scheme, whole_uri

# Spark and Hadoop ignore names with this prefix.
SCHEMA_FILE = "_schema.json"
_INFERRED_EXAMPLES = 1000
# Environment variable for the maximum size of a record in MiB; by default the core's limit.
RECORD_LIMIT = "HEARTH_MAX_RECORD_MB"
_COPY_BYTES = 4 << 20
# The prefix of an unfinished job's folder of parts, and the marker file of a finished job.
_WRITTEN, _SUCCESS = "_written-", "_SUCCESS"


class NewFile:
    """A file being written under a temporary name."""

    def __init__(self, writer: Any, name: str):
        self._writer = writer
        self.name = name

    def write(self, batch: Any) -> None:
        """Adds the rows of a record batch."""
        self._writer.write(batch)


def prepare_folder(spark: Any, folder: str, schema: str) -> str:
    """Creates the folder and writes the rows' schema into it; returns the folder for tasks' output.

    Raises:
        FileExistsError: the folder already has files.
        ValueError: neither pyarrow nor fsspec supports its file system.
    """
    if is_local(folder, spark):
        target = local_path(folder) or folder
    elif scheme(folder) in ("", "hdfs", "viewfs"):
        target = whole_uri(folder, spark)
    else:  # fsspec may support the scheme
        target = folder
    system, path = file_system(target)
    if system.get_file_info(FileSelector(path, allow_not_found=True)):
        raise ExistsError(f"{folder} already has files: name another folder, or remove it")
    system.create_dir(path, recursive=True)
    with system.open_output_stream(f"{path}/{SCHEMA_FILE}") as file:
        file.write(schema.encode())
    written = f"{_WRITTEN}{secrets.token_hex(8)}"
    system.create_dir(f"{path}/{written}", recursive=True)
    return f"{target}/{written}"


def file_system(uri: str) -> tuple[FileSystem, str]:
    """The file system of a path or URI (the core's, pyarrow's or fsspec's), and the path in it.

    Raises:
        ValueError: no file system supports it.
    """
    local = local_path(uri)
    if local is not None:
        return LocalFileSystem(), local
    if system := arrow_file_system(uri):
        return system, uri
    try:
        return library_system(uri)
    except ValueError as error:
        raise invalid(f"{uri} cannot be written: {error}") from error


@contextmanager
def new_file(folder: str, partition: int, attempt: int) -> Iterator[NewFile]:
    """Opens the partition's file, published when it is complete. The first attempt to finish wins.

    `attempt`: unique within the application. A failed attempt leaves no file.
    """
    name = f"part-r-{partition:05d}"
    system, path = file_system(folder)
    if scheme(folder) in CORE_SCHEMES:
        new = _new_core_file(f"{path}/{name}")
    else:
        new = _new_hidden_file(system, f"{path}/_{name}.{attempt}", f"{path}/{name}", partition)
    with new as writer:
        yield NewFile(writer, name)


@contextmanager
def _new_core_file(final: str) -> Iterator[Any]:
    """Yields a writer of the core, which renames the file when it is complete."""
    from hearth.native._core import TfRecordWriter, stat_file

    writer = TfRecordWriter(final)
    try:
        yield writer
        if stat_file(final) is None:
            writer.finish()
    finally:
        writer.discard()


@contextmanager
def _new_hidden_file(system: FileSystem, hidden: str, final: str, partition: int) -> Iterator[Any]:
    """Yields a writer of `hidden`; writes a local file first if `hidden` is remote."""
    from hearth.native._core import TfRecordWriter

    try:
        if isinstance(system, LocalFileSystem):
            writer = TfRecordWriter(hidden)
            yield writer
            writer.finish()
        else:
            with tempfile.NamedTemporaryFile(dir=spill_folder(partition)) as local:
                writer = TfRecordWriter(local.name)
                yield writer
                writer.finish()
                with system.open_output_stream(hidden) as target:
                    shutil.copyfileobj(local, target, _COPY_BYTES)
        publish(system, hidden, final)
    finally:
        remove_hidden(system, hidden)


def publish(system: FileSystem, hidden: str, final: str) -> None:
    """Renames the file to its final name, unless another attempt has published it."""
    if isinstance(system, LocalFileSystem):
        try:
            os.link(hidden, final)
        except FileExistsError:
            pass
        except OSError:  # no hard links here
            if not os.path.exists(final):
                os.rename(hidden, final)
    elif system.get_file_info(final).type == FileType.NotFound:
        system.move(hidden, final)


def remove_hidden(system: FileSystem, hidden: str) -> None:
    """Removes the file if it exists. Never raises."""
    with suppress(OSError):
        if system.get_file_info(hidden).type == FileType.File:
            system.delete_file(hidden)


def finish(written: str, names: Sequence[str]) -> None:
    """Moves the complete parts to the output folder, and writes Hadoop's success marker.

    `written`: the result of prepare_folder().
    """
    system, path = file_system(written)
    folder = path.rpartition("/")[0]
    for name in names:
        system.move(f"{path}/{name}", f"{folder}/{name}")
    system.open_output_stream(f"{folder}/{_SUCCESS}").close()
    # This may fail: object stores have no empty folders, and a killed attempt may still be writing.
    with suppress(OSError):
        system.delete_dir(path)


def abandon(written: str) -> None:
    """Removes the output of a failed job, but not the empty folder. Never raises OSError."""
    system, path = file_system(written)
    with suppress(OSError):
        system.delete_dir(path)
    with suppress(OSError):
        system.delete_file(f"{path.rpartition('/')[0]}/{SCHEMA_FILE}")


def _refuse_incomplete(folder: str) -> NoReturn:
    raise invalid(
        f"{folder} is incomplete: saveAsTFRecords has not finished there (it has no {_SUCCESS}). "
        "Remove the folder, and write it again"
    )


def list_files(spark: Any, folder: str) -> list[str]:
    """The visible files of a folder sorted by name, or the one file.

    Raises:
        FileNotFoundError: the folder does not exist.
    """
    if is_local(folder, spark):
        path = Path(local_path(folder) or folder)
        if path.is_file():
            return [str(path)]
        if not path.is_dir():
            raise NotFoundError(f"{folder} does not exist")
        return sorted(
            str(file) for file in path.iterdir() if _is_data(file.name) and file.is_file()
        )
    root, system = _hadoop(spark, folder)
    if not system.exists(root):
        raise NotFoundError(f"{folder} does not exist")
    found = [(status.getPath(), status.isFile()) for status in system.listStatus(root)]
    return sorted(
        str(path.toString()) for path, is_file in found if is_file and _is_data(path.getName())
    )


def _is_data(name: str) -> bool:
    return not name.startswith(("_", "."))


def _hadoop(spark: Any, uri: str) -> tuple[Any, Any]:
    path = spark._jvm.org.apache.hadoop.fs.Path(uri)
    return path, path.getFileSystem(spark._jsc.hadoopConfiguration())


def read_schema(spark: Any, folder: str) -> dict[str, Any] | None:
    """Reads the schema that saveAsTFRecords wrote; None if another program wrote the files.

    Raises:
        ValueError: saveAsTFRecords did not finish.
    """
    if is_local(folder, spark):
        file = Path(local_path(folder) or folder) / SCHEMA_FILE
        if not file.is_file():
            return None
        if not file.with_name(_SUCCESS).exists():
            _refuse_incomplete(folder)
        return json.loads(file.read_text(encoding="utf-8"))
    path, system = _hadoop(spark, f"{folder.rstrip('/')}/{SCHEMA_FILE}")
    if not system.exists(path):
        return None
    if not system.exists(_hadoop(spark, f"{folder.rstrip('/')}/{_SUCCESS}")[0]):
        _refuse_incomplete(folder)
    stream = system.open(path)
    try:
        return json.loads(spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def left_schema(folder: str) -> Any:
    """Like read_schema(), but without Spark: reads the StructType that saveAsTFRecords wrote.
    Raises ValueError if saveAsTFRecords did not finish.
    """
    from pyspark.sql.types import StructType

    from hearth.files.input_files import open_uri, status_of

    schema_file = f"{folder}/{SCHEMA_FILE}"
    found = status_of(schema_file)
    if found is None:
        return None
    if status_of(f"{folder}/{_SUCCESS}") is None:
        _refuse_incomplete(folder)
    return StructType.fromJson(json.loads(open_uri(schema_file).read_at(0, found[0])))


def inferred_schema(readers: Iterable[Any]) -> Any:
    """Infers the StructType from the first non-empty reader's first examples; bytes are binary."""
    from hearth.files.tfrecord_schema import infer_fields

    scans = (reader.scan(_INFERRED_EXAMPLES) for reader in readers)
    examples = next(filter(None, scans), [])
    return infer_fields(examples, [name for example in examples for name, _, _ in example])


def first_examples(spark: Any, files: list[str]) -> list[Any]:
    """The first examples of the first non-empty file, as TfRecordReader.scan() returns them."""
    for file in files:
        if is_local(file, spark):
            found = open_records(local_path(file)).scan(_INFERRED_EXAMPLES)
        else:
            row = frame_of(spark, [file]).first()
            found = open_records(bytes(row.content), file).scan(_INFERRED_EXAMPLES)
        if found:
            return found
    return []


def frame_of(spark: Any, files: list[str]) -> Any:
    """A DataFrame with a row per file: a local file's path, or a remote file's path and content."""
    if is_local(files[0], spark):
        rows = [(file,) for file in files]
        context = spark.sparkContext
        return context.parallelize(rows, len(rows)).toDF("path string")
    return spark.read.format("binaryFile").load(files).select("path", "content")


def open_records(*source: Any) -> Any:
    """A TfRecordReader for a path or URI, or for a file's bytes and name.

    Raises:
        ValueError: HEARTH_MAX_RECORD_MB is not a number of MiB.
    """
    from hearth.native._core import TfRecordReader

    limit = os.environ.get(RECORD_LIMIT, "")
    if not limit:
        return TfRecordReader(*source)
    if not (limit.isascii() and limit.isdigit() and 0 < int(limit) < 1 << 20):
        most = (1 << 20) - 1
        raise invalid(f"{RECORD_LIMIT}={limit} is not a number of MiB: give 1 to {most}")
    return TfRecordReader(*source, largest_record_bytes=int(limit) << 20)


def open_readers(batch: Any) -> Iterator[Any]:
    """A TfRecordReader for each file in a batch of frame_of()."""
    for row in batch.to_pylist():
        if "content" in row:
            yield open_records(row["content"], row["path"])
        else:
            yield open_records(row["path"])
