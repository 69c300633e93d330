"""The Parquet files of one run: the driver pins which there are, every rank reads exactly these."""

from __future__ import annotations

import json
import os
import socket
import zlib
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hearth.files.table_folders import refuse_table
from hearth.files.uri import local_path

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

# Footers are read in so many threads: on a network file system each is a round trip or two.
_FOOTER_THREADS = 16


@dataclass(frozen=True)
class PinnedFile:
    """One file as the driver saw it: its path below the pinned folder, rows and bytes."""

    name: str
    rows: int
    size: int


@dataclass(frozen=True)
class PinnedFiles:
    """The files of a source and their schema as they were at one time.

    It travels in Spark's task closure, so the list is packed: some ten bytes for a file that Spark
    wrote.
    """

    folder: str
    packed: bytes

    @cached_property
    def _content(self) -> dict[str, Any]:
        return json.loads(zlib.decompress(self.packed))

    @cached_property
    def files(self) -> list[PinnedFile]:
        """In the order in which their rows count."""
        return [PinnedFile(*fields) for fields in self._content["files"]]

    @cached_property
    def schema(self) -> pa.Schema:
        """Of all files, including columns that folder names hold."""
        return _schema_from_text(self._content["schema"])

    def __getstate__(self) -> dict[str, Any]:  # what is cached does not travel
        return {"folder": self.folder, "packed": self.packed}

    def open(self, file: PinnedFile) -> ds.ParquetFileFragment:
        """The file, as long as it is the one that was pinned.

        Raises:
            ValueError: it is not there, or has another size or number of rows.
        """
        import pyarrow.dataset as ds

        path = self.check(file)
        folders = _schema_from_text(self._content["folders"])
        partitioning = ds.partitioning(folders, flavor="hive") if folders.names else None
        dataset = ds.dataset([path], self.schema, format="parquet", partitioning=partitioning)
        fragment = next(iter(dataset.get_fragments()))
        if fragment.metadata.num_rows != file.rows:
            said = f"has {fragment.metadata.num_rows} rows instead of {file.rows}"
            raise ValueError(self._changed(path, said))
        return fragment

    def check(self, file: PinnedFile) -> str:
        """The file's path. Raises ValueError where it is not there, or has another size."""
        path = os.path.join(self.folder, file.name)
        try:
            size = os.path.getsize(path)
        except OSError as error:
            raise ValueError(self._changed(path, f"cannot be found ({error.strerror})")) from None
        if size != file.size:
            raise ValueError(self._changed(path, f"has {size} bytes instead of {file.size}"))
        return path

    def _changed(self, path: str, said: str) -> str:
        return (
            f"{path} {said} on host {socket.gethostname()}: a run reads the {len(self.files)} "
            "files that its driver found when it began; put the file back, make the "
            "same files visible to all hosts, or start the run again"
        )


def pin_files(source: str) -> PinnedFiles:
    """The Parquet files of `source`, a file or folder, as they are now.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: not a local path, no Parquet file, or a folder without Parquet files.
    """
    import pyarrow as pa

    dataset = open_dataset(source)
    path = local_path(source) or source
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
        files = list(pool.map(lambda name: _pin_file(folder, name), dataset.files))
    partitioning = getattr(dataset, "partitioning", None)
    folders = partitioning.schema if partitioning is not None else pa.schema([])
    content = {
        "files": files,
        "schema": _schema_to_text(dataset.schema),
        "folders": _schema_to_text(folders),
    }
    return PinnedFiles(folder, zlib.compress(json.dumps(content).encode()))


def _pin_file(folder: str, path: str) -> tuple[str, int, int]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        size = os.path.getsize(path)
        return os.path.relpath(path, folder), pq.read_metadata(path).num_rows, size
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{path} cannot be read as Parquet: {reason}") from None


def open_dataset(source: str) -> ds.Dataset:
    """The Parquet file or folder (files in name order, hidden files left out).

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: not a local path, no Parquet file, a folder without Parquet files, or a table of
            Delta, Iceberg or Hudi.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    path = local_path(source)
    if path is None:
        raise ValueError(f"{source} is not a local path, so it cannot be read beside the trainer")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{source} does not exist on this host (looked for {path})")
    refuse_table(path)
    try:
        dataset = ds.dataset(path, format="parquet", partitioning="hive")
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{source} cannot be read as Parquet: {reason}") from None
    if os.path.isdir(path) and not dataset.files:
        raise ValueError(f"{source} holds no Parquet files")
    return dataset


def _schema_to_text(schema: pa.Schema) -> str:
    return b64encode(schema.remove_metadata().serialize().to_pybytes()).decode()


def _schema_from_text(text: str) -> pa.Schema:
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(b64decode(text)))
