"""Snapshots of Iceberg tables, through the package pyiceberg on the driver."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hearth.errors import NotFoundError, invalid
from hearth.files.stored_files import served, stored_in
from hearth.files.uri import is_remote
from hearth.sources.file_source import FileSource
from hearth.sources.tables.columns import Column, has_struct, plain
from hearth.sources.tables.data_files import DataFile, located, pack_rows, whole_path
from hearth.sources.tables.format import TableFormat
from hearth.sources.tables.moments import moment
from hearth.sources.tables.names import is_name, quoted
from hearth.sources.tables.table_source import TableSource, needed, read_whole
from hearth.spark.token_forwarder import forward_tokens

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.table.snapshots import Snapshot

_VERSION = "Iceberg snapshot"
_HINT = "metadata/version-hint.text"


@dataclass(frozen=True)
class IcebergSource(TableSource):
    """An Iceberg table, not pinned yet; without `snapshot_id` and `as_of`, the current snapshot.
    `table`: pyiceberg's, if the user has loaded it; `uri` is then its name.
    """

    snapshot_id: int | None = None
    as_of: str | datetime | None = None
    table: Any = None

    def pin(self, spark: Any = None) -> FileSource:
        forward_tokens(spark)
        needed("pyiceberg.table", "iceberg")
        with _errors(self.uri):
            table = self.table or _loaded(self.uri, spark)
            snapshot = self._snapshot(table)
            version = f"{_VERSION} {snapshot.snapshot_id if snapshot else 'none'}"
            scan = table.scan(snapshot_id=snapshot.snapshot_id if snapshot else None)
            schema = scan.projection()
            columns = _columns(schema, table)
            files = list(_files(scan.plan_files(), schema, table)) if snapshot else []
        remote = [file.uri for file in files[:1] if is_remote(file.uri)]
        lister = served(remote[0], spark)[1] if remote else None
        files = located(files, lister, f"{version} of {self.uri}")
        kind = f"Parquet of {version} of {self.uri}"
        return self.pinned(TableFormat(kind, columns), version, files)

    def resumed(self, version: str) -> IcebergSource:
        system, _, number = version.rpartition(" ")
        if self.snapshot_id is None and self.as_of is None and system == _VERSION:
            return replace(self, snapshot_id=int(number)) if number != "none" else self
        return self

    def _snapshot(self, table: Table) -> Snapshot | None:
        """The requested snapshot; None if the table is empty."""
        if self.snapshot_id is not None:
            found = table.snapshot_by_id(self.snapshot_id)
            if found is None:
                raise invalid(
                    f"it has no snapshot {self.snapshot_id}, which may have expired: name one of "
                    + (", ".join(str(s.snapshot_id) for s in table.snapshots()[-5:]) or "none")
                )
            return found
        if self.as_of is None:
            return table.current_snapshot()
        wanted = moment("as_of", self.as_of)
        found = table.snapshot_as_of_timestamp(int(wanted.timestamp() * 1000))
        if found is None:
            raise invalid(
                f"it has no snapshot of {wanted.isoformat()} or earlier: it was created later, or "
                "the snapshot has expired"
            )
        return found


@contextmanager
def _errors(uri: str) -> Iterator[None]:
    """Converts pyiceberg's errors to one-line errors that name the table."""
    try:
        yield
    except ImportError:
        raise
    except FileNotFoundError as error:
        raise NotFoundError(f"the Iceberg table {uri} cannot be read: {error}") from error
    except Exception as error:  # pyiceberg's errors do not derive from OSError or ValueError
        said = str(error).partition("\n")[0] or type(error).__name__
        if "equality deletes" in said:
            said = "it has equality deletes, which are not supported: rewrite its data files first"
        raise invalid(f"the Iceberg table {uri} cannot be read: {said}") from error


def _loaded(uri: str, spark: Any) -> Table:
    """Loads a table by its name in a catalog, its folder, or its metadata file."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.serializers import FromInputFile
    from pyiceberg.table import StaticTable

    from hearth.sources.tables.iceberg_io import DriverFileIO

    if is_name(uri):
        location = _of_spark(uri, spark)
        if location is None:
            catalog, _, rest = uri.partition(".")
            if "." in rest:
                return load_catalog(catalog).load_table(rest)
            return load_catalog().load_table(uri)
        uri = location
    where, lister = served(uri, spark)
    location = where if where.endswith(".metadata.json") else _newest(where, lister)
    files = DriverFileIO(lister)
    metadata = FromInputFile.table_metadata(files.new_input(location))
    return StaticTable(("table",), metadata, location, files, NoopCatalog("none"))


def _of_spark(name: str, spark: Any) -> str | None:
    """The metadata file of a table in one of Spark's catalogs; None if Spark has no such table."""
    if spark is None:
        return None
    text = f"SELECT timestamp, file FROM {quoted(name)}.metadata_log_entries"
    try:
        times = [(at, i, file) for i, (at, file) in enumerate(spark.sql(text).collect())]
        return whole_path(max(times)[-1])
    except Exception:  # Spark has no such table: try pyiceberg's catalogs
        return None


def _newest(where: str, lister: Any) -> str:
    """The newest metadata file, according to the table's version hint."""
    folder = where.rstrip("/")
    if not stored_in(f"{folder}/metadata", lister):
        raise NotFoundError(f"{folder} does not exist, or has no files in its folder metadata")
    if not stored_in(f"{folder}/{_HINT}", lister):
        raise invalid(
            f"{folder} has no {_HINT}, so only its catalog knows the newest metadata: pass "
            "the table's name, pyiceberg's table, or the metadata file"
        )
    hint = read_whole(f"{folder}/{_HINT}", lister).decode().strip()
    if hint.isdecimal():
        hint = f"v{hint}"
    name = hint if hint.endswith(".metadata.json") else f"{hint}.metadata.json"
    return f"{folder}/metadata/{name}"


def _columns(schema: Schema, table: Table) -> tuple[Column, ...]:
    """The columns of a snapshot."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    mapping = table.name_mapping()
    names = dict(_mapped(mapping.root if mapping else ()))
    types = schema_to_pyarrow(schema, include_field_ids=False)
    return tuple(_column(field, types.field(field.name).type, names) for field in schema.fields)


def _mapped(fields: Iterable[Any]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """By field id, the field's possible names in files without ids."""
    for field in fields:
        yield field.field_id, tuple(field.names)
        yield from _mapped(field.fields)


def _column(field: Any, kind: pa.DataType, names: Mapping[int, tuple[str, ...]]) -> Column:
    """Converts a pyiceberg field to a column."""
    try:
        found = plain(kind)
    except ValueError as error:
        raise invalid(f"column '{field.name}': {error}; read the table with Spark") from error
    parts: list[tuple[Any, pa.DataType]] = []
    if has_struct(found) and field.field_type.is_struct:
        parts = [(part, found.field(part.name).type) for part in field.field_type.fields]
    elif has_struct(found):
        parts = [(field.field_type.element_field, found.value_type)]
    children = tuple(_column(part, of, names) for part, of in parts)
    known = names.get(field.field_id, ())
    return Column(field.name, found, field.field_id, known, children, field.initial_default)


def _files(tasks: Iterable[FileScanTask], schema: Schema, table: Table) -> Iterator[DataFile]:
    """The snapshot's data files. Raises ValueError for unsupported files."""
    from pyiceberg.transforms import IdentityTransform

    names = {field.field_id: field.name for field in schema.fields}
    constant = {
        number: [
            (i, names[field.source_id])
            for i, field in enumerate(spec.fields)
            if isinstance(field.transform, IdentityTransform) and field.source_id in names
        ]
        for number, spec in table.specs().items()
    }
    deletes = cache(lambda path, kind: _deletes(path, kind, table.io))
    for task in tasks:
        file = task.file
        if file.file_format.value != "PARQUET":
            raise invalid(
                f"its file {file.file_path} is of {file.file_format.value}; only Parquet is "
                "supported: let Spark read the table, or rewrite its data files"
            )
        if file.key_metadata:
            raise invalid(f"its file {file.file_path} is encrypted: let Spark read the table")
        values = tuple((name, file.partition[i]) for i, name in constant[file.spec_id])
        found = [deletes(one.file_path, one.file_format.value) for one in task.delete_files]
        rows = [of_files[file.file_path] for of_files in found if file.file_path in of_files]
        deleted = pack_rows(np.unique(np.concatenate(rows))) if rows else b""
        size = file.file_size_in_bytes
        yield DataFile(
            whole_path(file.file_path), size, rows=file.record_count, values=values, deleted=deleted
        )


def _deletes(location: str, kind: str, files: FileIO) -> dict[str, np.ndarray]:
    """Reads deleted rows, by data file, from a file of positional deletes or deletion vectors."""
    from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
    from pyiceberg.table.puffin import PuffinFile

    with files.new_input(location).open() as stream:
        content = stream.read()
    if kind == "PUFFIN":
        vectors = deletion_vectors_from_puffin_file(PuffinFile(content))
        return {one.referenced_data_file: one.to_vector().to_numpy() for one in vectors}
    if kind != "PARQUET":
        raise invalid(
            f"the delete file {location} is of {kind}, which is not supported: rewrite the table's "
            "data files"
        )
    table = pq.read_table(io.BytesIO(content), columns=["file_path", "pos"])
    return {
        path: table.filter(pc.field("file_path") == path).column("pos").to_numpy()
        for path in table.column("file_path").unique().to_pylist()
    }
