"""Versions of Delta tables, through the package deltalake on the driver."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from hearth.errors import NotFoundError, invalid
from hearth.files.stored_files import StoredFile, served, stored_in
from hearth.files.uri import is_remote, local_path, scheme
from hearth.sources.file_source import FileSource
from hearth.sources.tables.columns import Column, has_struct, plain
from hearth.sources.tables.data_files import DataFile, located, pack_rows, whole_path
from hearth.sources.tables.format import TableFormat
from hearth.sources.tables.moments import moment
from hearth.sources.tables.names import location_of
from hearth.sources.tables.table_source import TableSource, needed, read_whole
from hearth.spark.token_forwarder import forward_tokens

if TYPE_CHECKING:
    from deltalake import DeltaTable

_LOG = "_delta_log"
# Reader features of Delta's protocol that are supported.
_KNOWN_FEATURES = {
    "columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview",
    "v2Checkpoint", "vacuumProtocolCheck", "variantType", "variantType-preview",
}  # fmt: skip
_COPYING_THREADS = 16


@dataclass(frozen=True)
class DeltaSource(TableSource):
    """A Delta table, not pinned yet. Without `version` and `timestamp`: the newest version."""

    version: int | None = None
    timestamp: str | datetime | None = None

    def pin(self, spark: Any = None) -> FileSource:
        forward_tokens(spark)
        where, lister = served(location_of(self.uri, "delta", spark), spark)
        with _local_log(where, lister) as folder, _errors(where, self.version):
            table = self._opened(where, folder)
            version, columns = f"Delta version {table.version()}", _columns(table)
            files = _files(table, where, folder)
        kind = f"Parquet of {version} of {where}"
        files = located(files, lister, f"{version} of {where}")
        return self.pinned(TableFormat(kind, columns), version, files)

    def resumed(self, version: str) -> DeltaSource:
        system, _, number = version.rpartition(" ")
        if self.version is None and self.timestamp is None and system == "Delta version":
            return replace(self, version=int(number))
        return self

    def _opened(self, where: str, folder: str) -> DeltaTable:
        deltalake = needed("deltalake", "delta")
        uri = Path(os.path.realpath(folder)).as_uri()
        if self.timestamp is None:
            try:
                return deltalake.DeltaTable(uri, version=self.version)
            except Exception:
                newest = deltalake.DeltaTable(uri).version()
                if self.version is None or self.version <= newest:
                    raise
            raise NotFoundError(
                f"the Delta table {where} has no version {self.version}: the newest is {newest}"
            )
        wanted = moment("timestamp", self.timestamp)
        table = deltalake.DeltaTable(uri)
        table.load_as_version(wanted)
        # For a time before the log's first version, deltalake returns that version instead of
        # failing.
        for commit in table.history()[-1:]:
            if commit.get("timestamp", 0) > wanted.timestamp() * 1000:
                raise invalid(
                    f"there is no version at {wanted.isoformat()}: the log begins later, with "
                    f"version {table.version()}"
                )
        return table


@contextmanager
def _errors(where: str, version: int | None) -> Iterator[None]:
    """Converts deltalake's errors to one-line errors."""
    try:
        yield
    except (ImportError, FileNotFoundError):
        raise
    except Exception as error:  # deltalake's errors do not derive from OSError or ValueError
        said = str(error).partition("\n")[0] or type(error).__name__
        which = "" if version is None else f"version {version} of "
        raise invalid(f"{which}the Delta table {where} cannot be read: {said}") from error


@contextmanager
def _local_log(where: str, lister: Any) -> Iterator[str]:
    """Yields a local folder with a table's log and deletion vectors.

    For other file systems, copies them through the client that also reads the data files.
    """
    if not stored_in(f"{where}/{_LOG}", lister):
        raise NotFoundError(
            f"{where} does not exist, or is not a Delta table: it has no files in {_LOG}"
        )
    if not is_remote(where) and "%" not in os.path.realpath(where):  # deltalake decodes "%"
        yield where
        return
    with tempfile.TemporaryDirectory(prefix="hearth-delta-") as folder:
        vectors = [f for f in stored_in(where, lister) if _is_vector(f.uri)]
        wanted = [(file, "") for file in vectors]
        for below in (_LOG, f"{_LOG}/_sidecars"):
            os.makedirs(f"{folder}/{below}")
            listed = stored_in(f"{where}/{below}", lister)
            wanted += [(file, below) for file in listed if not file.uri.endswith(".crc")]
        with ThreadPoolExecutor(_COPYING_THREADS, "hearth-log") as pool:
            copy = lambda item: _copy(item[0], f"{folder}/{item[1]}", lister)  # noqa: E731
            list(pool.map(copy, wanted))
        yield folder


def _is_vector(uri: str) -> bool:
    return uri.rpartition("/")[2].startswith("deletion_vector_")


def _copy(file: StoredFile, folder: str, lister: Any) -> None:
    path = f"{folder}/{file.uri.rpartition('/')[2]}"
    with open(path, "wb") as copy:
        copy.write(read_whole(file.uri, lister))
    if file.modified_ms:  # deltalake takes versions' times from the files
        os.utime(path, ns=(file.modified_ms * 1_000_000,) * 2)


def _columns(table: DeltaTable) -> tuple[Column, ...]:
    """The table's columns. Raises ValueError for unsupported features and types."""
    protocol = table.protocol()
    features = set(protocol.reader_features or ())
    if unknown := sorted(features - _KNOWN_FEATURES):
        raise invalid(
            f"the table's feature {unknown[0]} is not supported: read the table with Spark, and "
            "pass the DataFrame"
        )
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    fields = json.loads(table.schema().to_json())["fields"]
    types = pa.schema(table.schema().to_arrow())
    return tuple(_column(field, types.field(field["name"]).type, mode) for field in fields)


def _column(field: dict[str, Any], kind: pa.DataType, mode: str) -> Column:
    """Creates a column from its description in the log."""
    if _has_variant(field["type"]):
        raise invalid(
            f"column '{field['name']}' is a variant, which is not supported: read the table with "
            "Spark"
        )
    known = field.get("metadata") or {}
    physical = known.get("delta.columnMapping.physicalName", field["name"])
    names = (field["name"] if mode == "none" else physical,)
    number = known.get("delta.columnMapping.id") if mode == "id" else None
    try:
        found = plain(kind)
    except ValueError as error:
        raise invalid(f"column '{field['name']}': {error}; read the table with Spark") from error
    return Column(field["name"], found, number, names, _children(field["type"], found, mode))


def _has_variant(described: Any) -> bool:
    """Whether a type in the log contains a variant."""
    if not isinstance(described, dict):
        return bool(described == "variant")
    inner = [described.get(key) for key in ("elementType", "keyType", "valueType")]
    inner += [field["type"] for field in described.get("fields", ())]
    return any(map(_has_variant, inner))


def _children(described: Any, kind: pa.DataType, mode: str) -> tuple[Column, ...]:
    """Column.children for a struct, or for a list of structs."""
    if not has_struct(kind):
        return ()
    if described["type"] == "array":
        element = {"name": "element", "type": described["elementType"]}
        return (_column(element, kind.value_type, mode),)
    return tuple(
        _column(field, part.type, mode)
        for field, part in zip(described["fields"], kind, strict=True)
    )


def _files(table: DeltaTable, where: str, folder: str) -> list[DataFile]:
    """The version's data files, from the log."""
    actions = pa.table(table.get_add_actions(flatten=False))
    paths = actions.column("path").to_pylist()
    sizes = actions.column("size_bytes").to_pylist()
    counts = [None] * len(paths)
    if "num_records" in actions.column_names:
        counts = actions.column("num_records").to_pylist()
    values: Sequence[Any] = [{}] * len(paths)
    if "partition" in actions.column_names:
        values = actions.column("partition").to_pylist()
    deleted = _deleted(table, folder)
    files = []
    for path, size, count, value in zip(paths, sizes, counts, values, strict=True):
        path = unquote(path)  # a clone has absolute paths of another table's files
        uri = whole_path(path) if _is_absolute(path) else f"{where.rstrip('/')}/{path}"
        rows = deleted.pop(whole_path(path), b"")
        constant = tuple((value or {}).items())
        files.append(DataFile(uri, size, rows=count, values=constant, deleted=rows))
    if deleted:
        raise invalid(
            f"{next(iter(deleted))} has a deletion vector, but is not a file of this version"
        )
    return files


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or bool(scheme(path))


def _deleted(table: DeltaTable, folder: str) -> dict[str, bytes]:
    """The deleted rows of each file with a deletion vector, by relative or absolute path."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    found = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for uri, kept in zip(
            batch.column("filepath"), batch.column("selection_vector"), strict=True
        ):
            flags = kept.values.to_numpy(zero_copy_only=False)
            path = local_path(uri.as_py()) or unquote(uri.as_py())
            path = path.removeprefix(f"{os.path.realpath(folder)}/")
            found[path] = pack_rows(np.flatnonzero(~flags))
    return found
