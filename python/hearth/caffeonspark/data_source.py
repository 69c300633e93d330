"""DataSource: where the rows of a net's data layer come from, and which columns it reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.config import Config
from hearth.caffeonspark.flags import FlagError
from hearth.files.uri import is_local, local_path
from hearth.rows import file_reader
from hearth.spark.session import as_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The columns of a MemoryData source; the net cannot do without the first two.
_IMAGE_COLUMNS = ("label", "data", "id", "channels", "height", "width", "encoded")
_PARAMETER = {"DataFrameSource": "cos_data_param", "ImageDataFrame": "memory_data_param"}
_LAYER_TYPE = {"DataFrameSource": "CoSData", "ImageDataFrame": "MemoryData"}
_NOT_YET = ("LMDB", "SeqImageDataSource")


@dataclass(frozen=True)
class Source:
    """The rows of one data layer. Immutable; nothing is read before it is asked for."""

    conf: Config
    spark: SparkSession
    is_training: bool
    kind: str
    parameter: dict[str, Any]
    given: DataFrame | None = field(default=None, compare=False)

    @property
    def uri(self) -> str:
        """`source` of the layer; a local path is absolute."""
        uri = self.parameter.get("source", "")
        return (local_path(uri, self.conf.net_file) or uri) if is_local(uri, self.spark) else uri

    @property
    def file_format(self) -> str:
        return self.parameter.get("dataframe_format") or "parquet"

    @property
    def selection(self) -> list[str]:
        """`dataframe_column_select`: SQL expressions; empty means the columns as they are."""
        return list(self.parameter.get("dataframe_column_select", []))

    def wanted_columns(self, available: list[str]) -> list[str]:
        """The columns that the layer reads, of `available`.

        Raises:
            FlagError: one that the layer needs is missing.
        """
        if self.kind == "ImageDataFrame":
            needed, optional = _IMAGE_COLUMNS[:2], _IMAGE_COLUMNS[2:]
        else:
            needed = tuple(top["name"] for top in self.parameter.get("top", []))
            optional = ("id", "SampleID")
        for name in needed:
            if name not in available:
                where, known = self.uri or "the DataFrame", ", ".join(available)
                raise FlagError(f"{where} has no column '{name}' for the net; it has {known}")
        return [*needed, *(name for name in optional if name in available and name not in needed)]

    def file_columns(self) -> list[str] | None:
        """The columns as file_reader names them where it can read this source, else None."""
        local = is_local(self.uri, self.spark)
        if self.given is not None or self.file_format != "parquet" or not local:
            return None
        try:
            available = file_reader.column_names(self.uri)
        except (ValueError, OSError) as error:
            raise FlagError(str(error)) from None
        try:
            pairs = [file_reader.parse_column(item) for item in self.selection or available]
        except ValueError:  # an SQL expression
            return None
        names = {alias: name for name, alias in pairs}
        wanted = self.wanted_columns(list(names))
        return [new if names[new] == new else f"{names[new]} as {new}" for new in wanted]

    def frame(self) -> DataFrame:
        """The rows as a DataFrame with only the columns that the layer reads."""
        frame = self.given
        if frame is None:
            frame = self.spark.read.format(self.file_format).load(self.uri)
        if self.selection:
            frame = frame.selectExpr(*self.selection)
        return frame.select(*self.wanted_columns(frame.columns))


class DataSource:
    """Makes sources from the data layers of a Config's net."""

    def __init__(self, sc: Any = None):
        """`sc`: SparkSession (classic or Connect) or SparkContext; None takes the active one."""
        self._spark = as_session(sc)

    def getSource(self, conf: Config, isTraining: bool) -> Source:
        """The source that the TRAIN (or TEST) net's data layer names.

        Raises:
            FlagError: no such layer, an unknown or not yet supported source_class, no `source`.
        """
        source = self._source(conf, isTraining, None)
        if not source.parameter.get("source"):
            layer = conf.data_layer(isTraining)["name"]
            raise FlagError(f"layer '{layer}' of {conf.net_file} names no `source`")
        return source

    def fromDataFrame(self, conf: Config, frame: DataFrame, isTraining: bool) -> Source:
        """The same with the rows of `frame` instead of the layer's `source`."""
        return self._source(conf, isTraining, frame)

    def _source(self, conf: Config, is_training: bool, frame: DataFrame | None) -> Source:
        layer = conf.data_layer(is_training)
        kind = layer["source_class"].rpartition(".")[2]
        where = f"layer '{layer['name']}' of {conf.net_file}"
        if kind in _NOT_YET:
            raise FlagError(f"{where}: source_class {kind} is not supported yet")
        if kind not in _LAYER_TYPE:
            known = " and ".join(_LAYER_TYPE)
            raise FlagError(f"{where}: unknown source_class {kind}; there are {known}")
        if layer["type"] != _LAYER_TYPE[kind]:
            raise FlagError(
                f"{where} is of type {layer['type']}; {kind} feeds {_LAYER_TYPE[kind]} layers"
            )
        return Source(conf, self._spark, is_training, kind, layer.get(_PARAMETER[kind], {}), frame)

    get_source = getSource
    from_data_frame = fromDataFrame
