"""Writes folders of part files directly from Python tasks, because through the JVM every byte would
be copied several more times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyarrow.fs import FileSelector

from hearth.caffeonspark.flags import FlagError
from hearth.files.hadoop_files import HadoopFiles
from hearth.files.tfrecord_files import file_system, publish, remove_hidden
from hearth.files.uri import CORE_SCHEMES, is_local, local_path, scheme, serving, whole_uri
from hearth.spark.task_resources import attempt_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The prefix of incomplete files.
_UNFINISHED = "_part-"


def task_folder(spark: SparkSession, output: str) -> str | None:
    """The path or full URI by which tasks write to `output`; None if Spark must write.

    Spark must write if only Hadoop supports the file system, because Spark has the user's settings
    for it, and if a Spark Connect client cannot resolve the default file system.
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
    """Creates the folder, calls `job` to write its part files, and marks it complete with _SUCCESS.

    Removes the folder if that fails. A killed driver leaves complete parts without _SUCCESS.

    Raises:
        FlagError: the folder has files.
    """
    system, path = file_system(target)
    if system.get_file_info(FileSelector(path, allow_not_found=True)):
        raise FlagError(f"-output {target} already has files: name another, or remove it")
    system.create_dir(path, recursive=True)
    try:
        job()
        for info in system.get_file_info(FileSelector(path)):
            if info.base_name.startswith(_UNFINISHED):  # left by killed attempts
                remove_hidden(system, info.path)
        system.open_output_stream(f"{path}/_SUCCESS").close()
    except BaseException:
        system.delete_dir(path)
        raise


@contextmanager
def part_file(target: str, part: int, ending: str = "") -> Iterator[Any]:
    """Opens a task's part file, published when it is complete. The first attempt to finish wins."""
    system, path = file_system(target)
    hidden, final = f"{path}/_part-{part:05d}.{attempt_id()}", f"{path}/part-{part:05d}{ending}"
    try:
        with system.open_output_stream(hidden) as file:
            yield file
        publish(system, hidden, final)
    finally:
        remove_hidden(system, hidden)
