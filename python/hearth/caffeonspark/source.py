"""The rows of one data layer, and which columns of them it reads."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.config import Config
from hearth.caffeonspark.flags import FlagError
from hearth.caffeonspark.sequence_file import sequence_frame
from hearth.caffeonspark.sequence_rows import SequenceRows
from hearth.caffeonspark.unlabelled import with_unread_columns
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
from hearth.rows import file_reader
from hearth.rows.far_formats import FAR_FORMATS
from hearth.rows.far_listing import list_stored
from hearth.rows.far_lmdb import FarLmdb
from hearth.rows.far_rows import FarRows
from hearth.rows.file_rows import DatabaseRows, FileRows
from hearth.rows.row_epochs import RowEpochs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

# What CaffeOnSpark's own sources feed, and the fields of a layer that is fed.
LAYER_TYPE = {
    "DataFrameSource": "CoSData",
    "ImageDataFrame": "MemoryData",
    "LMDB": "MemoryData",
    "LevelDB": "MemoryData",
    "SeqImageDataSource": "MemoryData",
}
# Why local files of a kind are not read anew in each epoch.
_FROM_THE_BEGIN = {
    "LMDB": "an LMDB is read by key, from its beginning",
    "LevelDB": "a LevelDB is read by key, from its beginning",
    SequenceRows.kind: "a SequenceFile is read from its beginning",
}
PARAMETER = {"CoSData": "cos_data_param", "MemoryData": "memory_data_param"}
# The columns of a MemoryData source; the net cannot do without the first two.
_IMAGE_COLUMNS = ("label", "data", "id", "channels", "height", "width", "encoded")


@dataclass(frozen=True)
class Source:
    """The rows of one data layer. Immutable; nothing is read before it is asked for.

    `kind`: of CaffeOnSpark's own sources, else `maker` is an object of the user's class. `given`:
    the user's rows, instead of those that the layer names.
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
        """The layer's fields about its rows, as a dict."""
        return self.layer.get(PARAMETER[self.layer["type"]], {})

    @property
    def uri(self) -> str:
        """`source` of the layer; a local path is absolute."""
        uri = self.parameter.get("source", "")
        return (local_path(uri, self.conf.net_file) or uri) if is_local(uri, self.spark) else uri

    @property
    def file_format(self) -> str:
        """Spark's name of the files' format; "parquet" unless the layer names another."""
        return self.parameter.get("dataframe_format") or "parquet"

    @property
    def selection(self) -> list[str]:
        """`dataframe_column_select`: SQL expressions; empty means the columns as they are."""
        return list(self.parameter.get("dataframe_column_select", []))

    def wanted_columns(self, available: dict[str, str]) -> list[str]:
        """The columns that the layer reads, of those `available`, which have types.

        Raises:
            FlagError: one that the layer needs is missing.
        """
        if self.layer["type"] == "MemoryData":
            needed, optional = _IMAGE_COLUMNS[:2], _IMAGE_COLUMNS[2:]
        else:
            needed = tuple(top["name"] for top in self.parameter.get("top", []))
            optional = ("id", "SampleID")
        for name in needed:
            if name not in available:
                known = ", ".join(f"{column} {kind}" for column, kind in available.items())
                raise FlagError(f"{self._where} has no column '{name}' for the net; it has {known}")
        return [*needed, *(name for name in optional if name in available and name not in needed)]

    def file_rows(self) -> FileRows | FarRows | DatabaseRows | FarLmdb | SequenceRows | None:
        """The rows as each rank reads them by itself, where it can; else None.

        Raises:
            FlagError: the files are not there, cannot be read, lack a column, or are a table's.
        """
        if self._is_database:
            return self._database(self.conf.cluster_size)
        if self.kind == "SeqImageDataSource" and (rows := self._sequence_rows()):
            return rows if not self.selection else None
        if self._has_log():
            return None
        if self._far_kind:
            return self._far_rows(self._far_kind)
        columns = self._file_columns()
        return None if columns is None else FileRows(self.uri, tuple(columns))

    @property
    def _by_spark(self) -> bool:
        """Whether only Spark can make the rows."""
        return self.given is not None or self.kind not in ("DataFrameSource", "ImageDataFrame")

    def _has_log(self) -> bool:
        """Whether a log beside the files says which of them count, and Spark minds it.

        Raises:
            FlagError: Spark would not mind it with this dataframe_format.
        """
        if self._by_spark or self.file_format.lower() not in DATA_FORMATS:
            return False
        here = is_local(self.uri, self.spark)
        files = None if here else serving(HadoopFiles.of(self.spark), self.uri)
        table = find_table(self.uri, files)
        if table is not None and table.format:
            raise FlagError(table.refusal(self.uri))
        return table is not None

    @property
    def _far_kind(self) -> str:
        """Of FAR_FORMATS, where ranks may read the files of another file system; else empty."""
        kind = "sequence" if self.kind == "SeqImageDataSource" else self.file_format
        frames = self.given is not None or self.maker is not None
        if frames or self._is_database or kind not in FAR_FORMATS or is_local(self.uri, self.spark):
            return ""
        where = self.uri if scheme(self.uri) else default_file_system(self.spark)
        return kind if scheme(where) in CORE_SCHEMES or library_knows(where) else ""

    def _far_rows(self, kind: str) -> FarRows | None:
        """None where only Spark can read the files, with the reason in the log."""
        from hearth import HearthError

        try:
            uri = whole_uri(self.uri, self.spark)
            files = tuple(list_stored(self.spark, uri))
            if kind == "parquet" and not files[0].uri.endswith(".parquet"):
                return None
            types = FAR_FORMATS[kind].types(next((f.uri for f in files if f.size), files[0].uri))
            rows = FarRows(uri, (), files, kind=kind).evened(self.conf.cluster_size)
        except (OSError, ValueError, HearthError) as error:
            logger.warning("%s is read by Spark: %s", self.uri, error)
            return None
        columns = self._selected(types)
        if columns is None:
            return None
        return replace(rows, columns=tuple(file_reader.select(columns, list(types), uri)))

    def row_epochs(self, seed: int) -> RowEpochs:
        """The rows as each rank reads them anew in each epoch, for `-spill off`.

        Raises:
            FlagError: ranks cannot read them by themselves; or as file_rows() does.
        """
        rows = self.file_rows()
        if isinstance(rows, FileRows | FarRows | FarLmdb):
            return RowEpochs(rows, seed)
        why = (
            "the rows come through Spark, which would have to compute them again in each epoch, "
            "while the ranks hold its task slots"
            if rows is None
            else _FROM_THE_BEGIN[rows.kind]
        )
        raise FlagError(
            f"-spill off: {self._where} cannot be read anew in each epoch: {why}. Give Parquet "
            "files with columns as they are (in HDFS also ORC, SequenceFiles or an LMDB), "
            "or leave -spill off out"
        )

    def _file_columns(self) -> list[str] | None:
        """The columns as file_reader names them where it can read this source, else None."""
        if self._by_spark or self.file_format != "parquet" or not is_local(self.uri, self.spark):
            return None
        try:
            types = file_reader.column_types(self.uri)
        except (ValueError, OSError) as error:
            raise FlagError(str(error)) from None
        return self._selected(types)

    def _selected(self, types: dict[str, str]) -> list[str] | None:
        """The columns as file_reader names them, of files with those `types`; None where the layer
        selects more than columns."""
        try:
            pairs = [file_reader.parse_column(item) for item in self.selection]
        except ValueError:  # an SQL expression
            return None
        names = {alias: name for name, alias in pairs or zip(types, types, strict=True)}
        if len(names) < len(pairs):  # Spark says which name stands for two columns
            return None
        wanted = self.wanted_columns({new: types.get(old, "?") for new, old in names.items()})
        return [new if names[new] == new else f"{names[new]} as {new}" for new in wanted]

    def frame(self, blobs: list[str] | None = None, beside: tuple[str, ...] = ()) -> DataFrame:
        """The rows as a DataFrame with only the columns that the layer reads, and those `beside`.

        `blobs`: what will be asked of the net; columns that none of them depends on, labels for
        instance, may then be missing.
        """
        frame = self._whole_frame()
        if self.selection:
            frame = frame.selectExpr(*self.selection, *beside)
        if blobs is not None:
            frame = with_unread_columns(frame, self.conf.net, self.layer, blobs)
        types = {item.name: item.dataType.simpleString() for item in frame.schema.fields}
        names = dict.fromkeys((*self.wanted_columns(types), *beside))
        return frame.select(*(f"`{name}`" for name in names))

    def _whole_frame(self) -> DataFrame:
        if self.given is not None:
            return self.given
        if self.maker is not None:
            return self._made()
        if self._is_database:
            return self._database(self.conf.lmdb_partitions).frame(self.spark)
        if self.kind == "SeqImageDataSource":
            if rows := self._sequence_rows():
                return rows.frame(self.spark, self.conf.cluster_size)
            return sequence_frame(self.spark, self._spark_uri, self.conf.cluster_size)
        self._has_log()
        return self.spark.read.format(self.file_format).load(self._spark_uri)

    @property
    def _where(self) -> str:
        """What the rows come from, for a message."""
        if self.given is not None:
            return "the DataFrame"
        return f"the DataFrame of {self._own_class}" if self.maker else self.uri

    @property
    def _own_class(self) -> str:
        return self.layer["source_class"].rpartition(".")[2]

    @property
    def _is_database(self) -> bool:
        return self.kind in ("LMDB", "LevelDB") and self.given is None

    @property
    def _spark_uri(self) -> str:
        """As Spark finds it whatever its default file system is."""
        uri = self.uri
        return f"file:{uri}" if is_local(self.parameter.get("source", ""), self.spark) else uri

    def _sequence_rows(self) -> SequenceRows | None:
        """None where Spark must read them."""
        here = self.given is None and is_local(self.uri, self.spark)
        return SequenceRows.find(local_path(self.uri) or self.uri) if here else None

    def _database(self, parts: int) -> DatabaseRows | FarLmdb:
        """Its parts as they are now. Raises FlagError."""
        if not is_local(self.uri, self.spark):
            return self._far_lmdb(parts)
        rows = DatabaseRows(self.uri, parts)
        try:
            if self.kind == "LevelDB" and rows.kind != self.kind:
                raise FileNotFoundError(f"{self.uri} is no LevelDB on this host: it has no CURRENT")
            if rows.kind != self.kind:
                raise ValueError(f'{self.uri} is a LevelDB: set source_class: "LevelDB"')
            return rows.pin()
        except (ValueError, OSError) as error:
            raise FlagError(str(error)) from None

    def _far_lmdb(self, parts: int) -> FarLmdb:
        from hearth import HearthError

        try:
            uri = whole_uri(self.uri, self.spark)
            if self.kind == "LMDB" and scheme(uri) in CORE_SCHEMES:
                return FarLmdb.find(self.spark, uri, parts)
        except (OSError, HearthError) as error:
            raise FlagError(str(error)) from None
        raise FlagError(
            f"{self.uri}: {'an' if self.kind == 'LMDB' else 'a'} {self.kind} is read in place, so "
            "it must lie under a path that all hosts see (file:...), or, an LMDB, in HDFS; or "
            "convert it to Parquet, which may lie anywhere"
        )

    def _made(self) -> DataFrame:
        frame = self.maker.makeFrame(self.conf, self.layer, self.is_training)
        if not hasattr(frame, "mapInArrow"):
            raise FlagError(
                f"makeFrame() of {self._own_class} gave a {type(frame).__name__} "
                "instead of a DataFrame"
            )
        return frame
