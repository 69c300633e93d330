"""Folders of part files that Python tasks write themselves: through the JVM every byte is copied
several times more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyarrow.fs import FileSelector

from hearth.caffeonspark.flags import FlagError
from hearth.files.hadoop_files import HadoopFiles
from hearth.files.tfrecord_files import file_system, publish, remove_hidden
from hearth.files.uri import CORE_SCHEMES, is_local, local_path, scheme, serving, whole_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How names of files begin that are not complete.
_UNFINISHED = "_part-"


def task_folder(spark: SparkSession, output: str) -> str | None:
    """`output` as tasks name it: a path, or a whole URI; None where Spark is to write.

    That is where it knows a file system that the core does not, with the user's settings for it,
    and where a client of Spark Connect cannot know which one is meant.
    """
    files, name = HadoopFiles.of(spark), scheme(output)
    if files is None and not name:
        return None
    if is_local(output, spark):
        return local_path(output) or output
    if name in ("", *CORE_SCHEMES):
        return whole_uri(output, spark)
    if serving(files, output) is files:
        return None
    try:
        file_system(output)
    except ValueError:
        return None
    return output


def write_folder(target: str, job: Callable[[], Any]) -> None:
    """Makes the folder, whose part files `job` writes, complete; nothing is left where it fails.

    A driver that is killed leaves the parts that were complete, without _SUCCESS.

    Raises:
        FlagError: there are files in it.
    """
    system, path = file_system(target)
    if system.get_file_info(FileSelector(path, allow_not_found=True)):
        raise FlagError(f"-output {target} has files already: name another, or remove it")
    system.create_dir(path, recursive=True)
    try:
        job()
        for info in system.get_file_info(FileSelector(path)):
            if info.base_name.startswith(_UNFINISHED):  # of attempts that were killed
                remove_hidden(system, info.path)
        system.open_output_stream(f"{path}/_SUCCESS").close()
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
