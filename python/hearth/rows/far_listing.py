"""The driver's look at files that nodes will read: names, sizes, and on which hosts blocks lie."""

from __future__ import annotations

from typing import Any

from hearth.files.hadoop_files import HadoopFiles
from hearth.files.stored_files import Block, StoredFile, known_time
from hearth.files.table_folders import refuse_table
from hearth.files.uri import serving
from hearth.spark.token_lender import lend_tokens


def list_stored(session: Any, uri: str) -> list[StoredFile]:
    """The files of a folder that are not hidden, or the one file, by name.

    Spark's JVM is asked, which knows the blocks. With Spark Connect there is none here: then the
    core is, which does not tell them.

    Raises:
        HearthError: they cannot be listed; nothing is there; folders in it are named after columns;
            they are a table's of Delta, Iceberg or Hudi.
    """
    from hearth import HearthError

    lend_tokens(session)  # what is listed is looked into
    files = serving(HadoopFiles.of(session), uri)
    try:
        refuse_table(uri, files)
    except ValueError as error:
        raise HearthError(str(error)) from None
    found = files.located(uri) if files is not None else _listed_by_core(uri)
    stored = []
    for name, size, is_folder, modified_ms, blocks in found:
        base = name.rstrip("/").rpartition("/")[2]
        if base.startswith(("_", ".")):
            continue
        if is_folder and "=" in base:
            raise HearthError(
                f"{uri} has a folder {base}: columns that stand in the names of folders are read "
                "by Spark only; feed its rows, or name one of the folders"
            )
        if not is_folder:
            blocks = tuple(Block(*block) for block in blocks)
            stored.append(StoredFile(name, size, blocks, known_time(name, modified_ms)))
    if not stored:
        raise HearthError(f"there are no files in {uri}")
    suffixes = {file.uri.endswith(".parquet") for file in stored}
    if len(suffixes) > 1:
        raise HearthError(f"{uri} has Parquet files and others: nodes read files of one format")
    return sorted(stored, key=lambda file: file.uri)


def _listed_by_core(uri: str) -> list[tuple[str, int, bool, int, list[Any]]]:
    from hearth import HearthError
    from hearth.native._core import list_folder, stat_file

    try:
        status = stat_file(uri)
        if status is None:
            return []
        listed = list_folder(uri) if status.is_folder else [status]
    except (OSError, RuntimeError, ValueError) as error:
        raise HearthError(f"cannot list {uri}: {error}") from None
    return [(file.uri, file.size, file.is_folder, file.modified_ms, []) for file in listed]
