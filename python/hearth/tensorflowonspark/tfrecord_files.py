"""TFRecord files where Spark keeps files: local ones by path, others by Hadoop's file systems."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hearth.storage import is_local, local_path

# Hidden to Spark and Hadoop, as all names that begin so.
SCHEMA_FILE = "_schema.json"
_INFERRED_EXAMPLES = 1000


class NewFile:
    """A file being written under a temporary name."""

    def __init__(self, writer: Any, name: str):
        self._writer = writer
        self.name = name

    def write(self, batch: Any) -> None:
        self._writer.write(batch)


def prepare_folder(spark: Any, folder: str, schema: str) -> str:
    """Makes the folder, with the rows' schema beside them; returns where tasks write.

    Raises:
        FileExistsError: it has files already.
        ValueError: it is not a folder of this machine's file system.
    """
    if not is_local(folder, spark):
        raise ValueError(
            f"{folder} is not in a local file system: saveAsTFRecords writes files that all "
            "executors and the driver see by one path; copy them from there"
        )
    path = Path(local_path(folder) or folder)
    if path.exists() and any(path.iterdir()):
        raise FileExistsError(f"{folder} has files already: name another folder, or remove it")
    path.mkdir(parents=True, exist_ok=True)
    (path / SCHEMA_FILE).write_text(schema, encoding="utf-8")
    return str(path)


@contextmanager
def new_file(folder: str, partition: int, attempt: int) -> Iterator[NewFile]:
    """The partition's file, which appears when it is complete."""
    from hearth.native._core import TfRecordWriter

    name = f"part-r-{partition:05d}"
    hidden = os.path.join(folder, f"_{name}.{attempt}")
    writer = TfRecordWriter(hidden)
    yield NewFile(writer, name)
    writer.finish()
    os.replace(hidden, os.path.join(folder, name))


def finish(spark: Any, folder: str) -> None:
    """Marks the folder as complete, as Hadoop does."""
    (Path(folder) / "_SUCCESS").touch()


def list_files(spark: Any, folder: str) -> list[str]:
    """The files of a folder that are not hidden, in the order of their names; or the one file.

    Raises:
        FileNotFoundError: nothing is there.
    """
    if is_local(folder, spark):
        path = Path(local_path(folder) or folder)
        if path.is_file():
            return [str(path)]
        if not path.is_dir():
            raise FileNotFoundError(f"{folder} does not exist")
        return sorted(
            str(file) for file in path.iterdir() if _is_data(file.name) and file.is_file()
        )
    root, system = _hadoop(spark, folder)
    if not system.exists(root):
        raise FileNotFoundError(f"{folder} does not exist")
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
    """The schema that saveAsTFRecords left; None where it did not write the files."""
    if not is_local(folder, spark):
        return None
    file = Path(local_path(folder) or folder) / SCHEMA_FILE
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def first_examples(spark: Any, files: list[str]) -> list[Any]:
    """The first examples of the first file that has any, as TfRecordReader.scan() gives them."""
    from hearth.native._core import TfRecordReader

    for file in files:
        if is_local(file, spark):
            found = TfRecordReader(local_path(file)).scan(_INFERRED_EXAMPLES)
        else:
            row = frame_of(spark, [file]).first()
            found = TfRecordReader(bytes(row.content), file).scan(_INFERRED_EXAMPLES)
        if found:
            return found
    return []


def frame_of(spark: Any, files: list[str]) -> Any:
    """A DataFrame of the files: their paths where local, else their contents by Spark."""
    if is_local(files[0], spark):
        rows = [(file,) for file in files]
        context = spark.sparkContext
        return context.parallelize(rows, len(rows)).toDF("path string")
    return spark.read.format("binaryFile").load(files).select("path", "content")


def open_readers(batch: Any) -> Iterator[Any]:
    """A TfRecordReader for each file of a batch of frame_of()."""
    from hearth.native._core import TfRecordReader

    for row in batch.to_pylist():
        if "content" in row:
            yield TfRecordReader(row["content"], row["path"])
        else:
            yield TfRecordReader(row["path"])
