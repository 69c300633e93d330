"""Folders of part files that Python tasks write themselves: through the JVM every byte is copied
several times more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hearth.files.tfrecord_files import (
    file_system,
    finish,
    publish,
    remove_hidden,
    remove_unfinished,
)
from hearth.files.uri import is_local, local_path, scheme, whole_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def task_folder(spark: SparkSession, output: str) -> str | None:
    """`output` as tasks name it: a path, or a whole URI; None where Hadoop alone knows its file
    system."""
    target = output
    if is_local(output, spark):
        target = local_path(output) or output
    elif scheme(output) in ("", "hdfs", "viewfs"):
        target = whole_uri(output, spark)
    try:
        file_system(target)
    except ValueError:
        return None
    return target


def write_folder(target: str, job: Callable[[], Any]) -> None:
    """Makes the folder, whose part files `job` writes, complete; nothing is left where it fails."""
    system, path = file_system(target)
    system.create_dir(path, recursive=True)
    try:
        job()
        remove_unfinished(target)  # of attempts that were killed
        finish(target)
    except BaseException:
        system.delete_dir(path)
        raise


@contextmanager
def part_file(target: str, part: int, ending: str = "") -> Iterator[Any]:
    """A task's file, which appears when it is complete; of several attempts, the first's."""
    from pyspark import TaskContext

    attempt = TaskContext.get().taskAttemptId()
    system, path = file_system(target)
    hidden, final = f"{path}/_part-{part:05d}.{attempt}", f"{path}/part-{part:05d}{ending}"
    try:
        with system.open_output_stream(hidden) as file:
            yield file
        publish(system, hidden, final)
    finally:
        remove_hidden(system, hidden)
