"""Tables in Spark's catalogs, by name: Delta, Iceberg, and Hive's and Spark's tables of files."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from inspect import signature
from typing import TYPE_CHECKING, Any

from hearth.errors import invalid
from hearth.files.stored_files import StoredFile, list_files
from hearth.sources.file_source import FileSource
from hearth.sources.folder_columns import folder_values
from hearth.sources.source import Source
from hearth.sources.tables.catalog_format import (
    CatalogFormat,
    PartitionFile,
    Values,
    table_column,
)
from hearth.sources.tables.delta import DeltaSource
from hearth.sources.tables.iceberg import IcebergSource
from hearth.sources.tables.names import described, is_name, quoted, uri_of
from hearth.sources.tables.table_source import TableSource
from hearth.spark.token_forwarder import forward_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

# Number of threads that list the folders of partitions.
_LISTING_THREADS = 16


@dataclass(frozen=True)
class CatalogTable(TableSource):
    """A table whose provider is not known yet. `uri`: its name. `version`, `timestamp`: select a
    Delta version or Iceberg snapshot.
    """

    version: int | None = None
    timestamp: str | datetime | None = None

    def resolved(self, spark: Any) -> Any:
        """The unpinned source for the table's provider.

        Raises:
            ValueError: there is no such table, or ranks cannot read it.
        """
        name = self.uri
        if spark is None or not is_name(name):
            other = "it is not a table name, or names a file here: write schema.table"
            why = "there is no Spark session" if is_name(name) else other
            raise invalid(f"Spark's catalog cannot be asked for the table {name}: {why}")
        known = described(quoted(name), spark)
        provider = _provider(known)
        if provider == "delta":
            return DeltaSource(name, self.columns, self.spool, self.version, self.timestamp)
        if provider == "iceberg":
            return IcebergSource(name, self.columns, self.spool, self.version, self.timestamp)
        if provider not in ("parquet", "orc") or not known.get("Location"):
            raise invalid(
                f"the table {name} is of {provider}, which ranks cannot read: pass the "
                f"DataFrame spark.table('{name}')"
            )
        if self.version is not None or self.timestamp is not None:
            raise invalid(f"table {name} is stored as {provider}, which does not support versions")
        return self._of_files(provider, known, spark)

    def pin(self, spark: Any = None) -> FileSource:
        pinned: FileSource = self.resolved(spark).pin(spark)
        return pinned

    def _of_files(self, provider: str, known: dict[str, str], spark: Any) -> Source:
        name = self.uri
        keys = tuple(c.name for c in spark.catalog.listColumns(quoted(name)) if c.isPartition)
        known_schema = spark.table(quoted(name)).schema
        schema = _arrow_schema(known_schema)
        late = tuple(c.name for c in known_schema if "EXISTS_DEFAULT" in (c.metadata or {}))
        columns = tuple(table_column(field, provider) for field in schema)
        kind = CatalogFormat(
            f"{provider.upper()} of the table {name}", provider, columns, keys, late
        )
        folders: tuple[tuple[str, Values], ...] = ((known["Location"], ()),)
        in_catalog = known.get("Partition Provider") == "Catalog" or _is_hive(known)
        if keys and in_catalog:
            folders = tuple(_partitions(name, keys, spark))
        named = bool(keys) and not in_catalog
        return CatalogFiles(kind, name, self.columns, self.spool, folders=folders, named=named)


@dataclass(frozen=True)
class CatalogFiles(FileSource):
    """Files of a catalog table, not pinned yet. `folders`: each folder and its partition values.
    `named`: whether partition values are in folder names instead of `folders`.
    """

    folders: tuple[tuple[str, Values], ...] = ()
    named: bool = False

    def pin_files(self, listed: Sequence[StoredFile]) -> FileSource:
        plain = FileSource(self.format, self.uri, self.columns, self.spool)
        files = self.format.data_files(listed)
        return plain.pin_known(files, self.format.schema(files))

    def _listed(self, spark: Any) -> list[StoredFile]:
        forward_tokens(spark)
        with ThreadPoolExecutor(_LISTING_THREADS, "hearth-list") as pool:
            found = pool.map(lambda folder: self._in_folder(*folder, spark), self.folders)
            return sorted((file for files in found for file in files), key=lambda file: file.uri)

    def _in_folder(self, folder: str, values: Values, spark: Any) -> list[StoredFile]:
        try:
            found = list_files(folder, spark, recursive=self.named)
        except FileNotFoundError:  # a partition may lack files or its folder
            return []
        return [
            PartitionFile(
                **vars(replace(file, below="")),
                values=tuple(folder_values(file.below).items()) if self.named else values,
            )
            for file in found
        ]


def _provider(known: dict[str, str]) -> str:
    """The table's provider: parquet, orc, delta, iceberg, or another name for messages."""
    provider = known.get("Provider", "").lower()
    if not _is_hive(known):
        return provider or known.get("Type", "another kind").lower()
    files = known.get("InputFormat", "").rpartition(".")[2]
    hive = {"MapredParquetInputFormat": "parquet", "OrcInputFormat": "orc"}
    return hive.get(files, f"Hive with files of {files}")


def _is_hive(known: dict[str, str]) -> bool:
    return known.get("Provider", "").lower() == "hive"


def _arrow_schema(schema: Any) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    # The argument is required since Spark 4.1.
    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)


def _partitions(name: str, keys: Sequence[str], spark: Any) -> Iterator[tuple[str, Values]]:
    """The folder of each partition that the catalog lists, and the partition columns' values."""
    if hasattr(spark, "_jsparkSession"):
        state = spark._jsparkSession.sessionState()
        table = state.sqlParser().parseTableIdentifier(quoted(name))
        catalog = state.catalog()
        found = catalog.listPartitions(table, getattr(catalog, "listPartitions$default$2")())
        path = spark._jvm.org.apache.hadoop.fs.Path
        for i in range(found.size()):
            partition = found.apply(i)
            spec = partition.spec()
            values = tuple((key, spec.apply(key)) for key in keys)
            yield uri_of(path(partition.location()).toString()), values
        return
    for (text,) in spark.sql(f"SHOW PARTITIONS {quoted(name)}").collect():
        values = tuple(folder_values(text).items())
        where = ", ".join(f"`{key}`={_literal(value)}" for key, value in values)
        yield described(quoted(name), spark, f"PARTITION ({where})")["Location"], values


def _literal(value: str | None) -> str:
    if value is None:
        return "null"
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
