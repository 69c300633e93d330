"""The rows of one data layer, and the columns that it reads."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.config import Config
from hearth.caffeonspark.flags import FlagError
from hearth.caffeonspark.sequence_file import sequence_frame
from hearth.caffeonspark.unlabelled import with_unread_columns
from hearth.errors import HearthError
from hearth.files.hadoop_files import HadoopFiles
from hearth.files.library_files import library_knows
from hearth.files.table_folders import DATA_FORMATS, find_table
from hearth.files.uri import (
    CORE_SCHEMES,
    default_file_system,
    is_local,
    local_path,
    scheme,
    serving,
    whole_uri,
)
from hearth.sources.columns import column_pairs, parse_column
from hearth.sources.file_source import FileSource
from hearth.sources.format import Format
from hearth.sources.frames import source_frame
from hearth.sources.image_keys import IMAGE_TYPES
from hearth.sources.leveldb import LevelDbFormat
from hearth.sources.lmdb import LmdbFormat
from hearth.sources.orc import OrcFormat
from hearth.sources.parquet import ParquetFormat
from hearth.sources.rank_rows import RankRows
from hearth.sources.sequence_file import SequenceFileFormat
from hearth.sources.tables.delta import DeltaSource
from hearth.sources.tables.iceberg import IcebergSource
from hearth.sources.tables.table_source import TableSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

# The layer type that each of CaffeOnSpark's built-in sources feeds.
LAYER_TYPE = {
    "DataFrameSource": "CoSData",
    "ImageDataFrame": "MemoryData",
    "LMDB": "MemoryData",
    "LevelDB": "MemoryData",
    "SeqImageDataSource": "MemoryData",
}
# Formats that ranks can read without Spark, by Spark's name of the format or the source's class.
_FORMATS: dict[str, Format] = {
    "parquet": ParquetFormat(),
    "orc": OrcFormat(),
    "SeqImageDataSource": SequenceFileFormat(),
}
_TABLES: dict[str, type[TableSource]] = {"delta": DeltaSource, "iceberg": IcebergSource}
_DATABASES: dict[str, Format] = {"LMDB": LmdbFormat(), "LevelDB": LevelDbFormat()}
# Bytes per partition of a DataFrame of SequenceFiles, unless that makes too few partitions.
_PARTITION_BYTES = 128 << 20
PARAMETER = {"CoSData": "cos_data_param", "MemoryData": "memory_data_param"}
# The columns of a MemoryData source; the first two are required.
_IMAGE_COLUMNS = ("label", "data", "id", "channels", "height", "width", "encoded")


@dataclass(frozen=True)
class Source:
    """The rows of one data layer. Immutable; nothing is read before it is needed.

    `kind` names a built-in source; if it is empty, `maker` is an instance of the user's class.
    `given`: the user's rows, read instead of the layer's `source`.
    """

    conf: Config
    spark: SparkSession
    is_training: bool
    kind: str
    layer: dict[str, Any]
    given: DataFrame | None = field(default=None, compare=False)
    maker: Any = field(default=None, compare=False)

    @property
    def parameter(self) -> dict[str, Any]:
        """The layer's cos_data_param or memory_data_param, as a dict."""
        return self.layer.get(PARAMETER[self.layer["type"]], {})

    @property
    def uri(self) -> str:
        """The layer's `source`; a local path is made absolute."""
        uri = self.parameter.get("source", "")
        return (local_path(uri, self.conf.net_file) or uri) if self._is_here else uri

    @property
    def _is_here(self) -> bool:
        """Whether `source` is in the local file system, which all hosts must share."""
        return is_local(self.parameter.get("source", ""), self.spark)

    @property
    def file_format(self) -> str:
        """Spark's name of the file format; "parquet" unless the layer names another."""
        return self.parameter.get("dataframe_format") or "parquet"

    @property
    def selection(self) -> list[str]:
        """`dataframe_column_select`: SQL expressions; empty: all columns, unchanged."""
        return list(self.parameter.get("dataframe_column_select", []))

    def wanted_columns(self, available: dict[str, str]) -> list[str]:
        """The columns that the layer reads. `available` maps the existing columns to their types.

        Raises:
            FlagError: a required column is missing.
        """
        needed: Sequence[str] = _IMAGE_COLUMNS[:2]
        optional: Sequence[str] = _IMAGE_COLUMNS[2:]
        if self.layer["type"] != "MemoryData":
            needed = [top["name"] for top in self.parameter.get("top", [])]
            optional = ("id", "SampleID")
        for name in needed:
            if name not in available:
                known = ", ".join(f"{column} {kind}" for column, kind in available.items())
                raise FlagError(f"{self._where} has no column '{name}' for the net; it has {known}")
        return [*needed, *(name for name in optional if name in available and name not in needed)]

    def file_rows(self, seed: int | None = None) -> RankRows | None:
        """The rows, if ranks can read them directly from files; otherwise None.

        With a `seed`, ranks reread the files in each epoch (-spill off); else they spool the rows.

        Raises:
            FlagError: the files are missing, cannot be read, lack a column, or belong to a table;
                or ranks cannot read them and `seed` is set.
        """
        source = self._file_source()
        if source is None and seed is not None:
            raise FlagError(
                f"-spill off: {self._where} cannot be read again in each epoch: the rows come "
                "through Spark, which would have to compute them in each epoch, while the ranks "
                "hold its task slots. Use Parquet files with plain columns, an LMDB, a LevelDB "
                "or SequenceFiles (in HDFS also ORC), or omit -spill off"
            )
        if source is None:
            return None
        return RankRows(source if seed is not None else source.in_place(), seed)

    def _file_source(self) -> FileSource | None:
        """The pinned files with the layer's columns; None if Spark must read them."""
        if self._is_database:
            return self._database()
        if self._has_log():
            return None
        source = self._pinned()
        columns = None if source is None else self._selected(_types(source))
        if source is None or columns is None:
            return None
        return source.select(column_pairs(columns, source.schema().names))

    @property
    def _by_spark(self) -> bool:
        """Whether only Spark can produce the rows."""
        return self.given is not None or self.kind not in ("DataFrameSource", "ImageDataFrame")

    def _has_log(self) -> bool:
        """Whether a log next to the files lists the ones to read, and Spark applies it.

        Raises:
            FlagError: Spark would ignore the log with this dataframe_format.
        """
        if self._by_spark or self.file_format.lower() not in DATA_FORMATS:
            return False
        files = None if self._is_here else serving(HadoopFiles.of(self.spark), self.uri)
        table = find_table(self.uri, files)
        if table is not None and table.format:
            raise FlagError(table.refusal(self.uri))
        return table is not None

    def _pinned(self) -> FileSource | None:
        """The files with all columns, or None if ranks cannot read them; logs errors of the files.
        Raises FlagError if local Parquet files have an error.
        """
        kind = self.kind if self.kind == "SeqImageDataSource" else self.file_format
        here = self._is_here
        by_ranks = kind in _FORMATS or kind in _TABLES
        if self.given is not None or self.maker is not None or not by_ranks:
            return None
        if here and kind == "orc":
            return None
        if not (here or self._is_of_core() or library_knows(self._with_scheme)):
            return None
        try:
            return self._pin_table(kind) if kind in _TABLES else self._pin(_FORMATS[kind])
        except ImportError:  # the table's library is optional
            return None
        except (OSError, ValueError, HearthError) as error:
            if here and kind == "parquet":
                raise FlagError(f"source of layer {self.layer['name']!r}: {error}") from error
            logger.warning("Spark reads %s, because the ranks cannot: %s", self.uri, error)
            return None

    @property
    def _with_scheme(self) -> str:
        return self.uri if scheme(self.uri) else default_file_system(self.spark)

    def _is_of_core(self) -> bool:
        """Whether the core has a client of the files' remote file system."""
        return scheme(self._with_scheme) in CORE_SCHEMES

    def _pin(self, kind: Format) -> FileSource:
        """Pins the current files. Raises like FileSource.pin()."""
        if self._is_here:
            return FileSource(kind, local_path(self.uri) or self.uri).pin()
        return FileSource(kind, whole_uri(self.uri, self.spark)).pin(self.spark)

    def _pin_table(self, kind: str) -> FileSource:
        """Pins the newest version of a table. Raises like TableSource.pin()."""
        if self._is_here:
            return _TABLES[kind](local_path(self.uri) or self.uri).pin()
        return _TABLES[kind](whole_uri(self.uri, self.spark)).pin(self.spark)

    def _selected(self, types: dict[str, str]) -> list[str] | None:
        """The layer's columns, as items for column_pairs(); None if it selects SQL expressions.
        `types`: the files' columns and their types.
        """
        try:
            pairs = [parse_column(item) for item in self.selection]
        except ValueError:  # an SQL expression
            return None
        names = {alias: name for name, alias in pairs or zip(types, types, strict=True)}
        if len(names) < len(pairs):  # two columns have one name: let Spark report it
            return None
        wanted = self.wanted_columns({new: types.get(old, "?") for new, old in names.items()})
        return [new if names[new] == new else f"{names[new]} as {new}" for new in wanted]

    def frame(self, blobs: list[str] | None = None, added: tuple[str, ...] = ()) -> DataFrame:
        """The rows as a DataFrame with the columns that the layer reads, and those in `added`.

        `blobs`: the blobs to be computed; columns that no blob depends on, such as labels, may be
        missing.
        """
        frame = self._whole_frame()
        if self.selection:
            frame = frame.selectExpr(*self.selection, *added)
        if blobs is not None:
            frame = with_unread_columns(frame, self.conf.net, self.layer, blobs)
        types = {item.name: item.dataType.simpleString() for item in frame.schema.fields}
        names = dict.fromkeys((*self.wanted_columns(types), *added))
        return frame.select(*(f"`{name}`" for name in names))

    def _whole_frame(self) -> DataFrame:
        if self.given is not None:
            return self.given
        if self.maker is not None:
            return self._made()
        if self._is_database:
            return source_frame(self._database(), self.conf.lmdb_partitions, self.spark)
        if self.kind == "SeqImageDataSource":
            if self._is_here and (found := self._pinned()):
                source = found.select([(name, name) for name in IMAGE_TYPES])
                parts = max(self.conf.cluster_size, source.size // _PARTITION_BYTES)
                return source_frame(source, parts, self.spark)
            return sequence_frame(self.spark, self._spark_uri, self.conf.cluster_size)
        self._has_log()
        return self.spark.read.format(self.file_format).load(self._spark_uri)

    @property
    def _where(self) -> str:
        """Where the rows come from, for messages."""
        if self.given is not None:
            return "the DataFrame"
        return f"the DataFrame of {self._user_class}" if self.maker else self.uri

    @property
    def _user_class(self) -> str:
        return self.layer["source_class"].rpartition(".")[2]

    @property
    def _is_database(self) -> bool:
        return self.kind in ("LMDB", "LevelDB") and self.given is None

    @property
    def _spark_uri(self) -> str:
        """The URI to pass to Spark; it does not depend on Spark's default file system."""
        return f"file:{self.uri}" if self._is_here else self.uri

    def _database(self) -> FileSource:
        """Pins the current database. Raises FlagError."""
        if not self._is_here and (self.kind != "LMDB" or not self._is_of_core()):
            raise FlagError(
                f"{self.uri}: {'an' if self.kind == 'LMDB' else 'a'} {self.kind} "
                "is read in place, so it must be on a path that all hosts see (file:...; an LMDB "
                "may also be in HDFS): move it there, or convert it to Parquet, which can be read "
                "from any file system"
            )
        try:
            return self._pin(_DATABASES[self.kind])
        except (ValueError, OSError, HearthError) as error:
            raise FlagError(str(error)) from error

    def _made(self) -> DataFrame:
        frame = self.maker.makeFrame(self.conf, self.layer, self.is_training)
        if not hasattr(frame, "mapInArrow"):
            raise FlagError(
                f"makeFrame() of {self._user_class} returned a {type(frame).__name__} "
                "instead of a DataFrame"
            )
        return frame


def _types(source: FileSource) -> dict[str, str]:
    return {field.name: str(field.type) for field in source.schema()}
