"""DataSource: the rows of a net's data layer, from built-in or user-defined sources."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.config import Config
from hearth.caffeonspark.flags import FlagError
from hearth.caffeonspark.jvm_source import jvm_source
from hearth.caffeonspark.source import LAYER_TYPE, PARAMETER, Source
from hearth.spark.session import as_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UPSTREAM = "com.yahoo.ml.caffe."


class DataSource:
    """Creates sources from the data layers of a Config's net.

    A subclass provides rows. A layer selects it by `source_class: "my.module.MySource"`; then
    makeFrame() is called on the driver, once for each training, test or extraction.
    """

    def __init__(self, sc: Any = None):
        """`sc`: SparkSession (classic or Connect) or SparkContext; None means the active one."""
        self._spark = as_session(sc)

    def makeFrame(self, conf: Config, layer: dict[str, Any], isTraining: bool) -> DataFrame:
        """The rows of a layer, for a subclass to override.

        For a CoSData layer, the DataFrame has a column for each top, named as in `cos_data_param`.
        For a MemoryData layer it has `data` and `label`, and optionally `channels`, `height`,
        `width` and `encoded`. An optional column `id` names the rows. The DataFrame may be
        evaluated more than once, for instance after a restart, and must have the same rows each
        time, in any order.

        Args:
            conf: the settings of the run; `conf.spark` is the session.
            layer: the layer of the net's prototxt, as a dict.
            isTraining: whether the rows are for training.
        """
        raise NotImplementedError

    def getSource(self, conf: Config, isTraining: bool) -> Source:
        """The source of the TRAIN (or TEST) net's data layer. Rereads prototxts that have changed.

        Raises:
            FlagError: no such layer, an unknown source_class, no `source`, or a prototxt that
                changed and can no longer be read.
        """
        source = self._source(conf, isTraining, None)
        if source.maker is None and not source.parameter.get("source"):
            layer = conf.data_layer(isTraining)["name"]
            raise FlagError(
                f"layer '{layer}' of {conf.net_file} has no `source`: set it, or call "
                "fromDataFrame()"
            )
        return source

    def fromDataFrame(self, conf: Config, frame: DataFrame, isTraining: bool) -> Source:
        """Like getSource(), with the rows of `frame` instead of the layer's `source`."""
        return self._source(conf, isTraining, frame)

    def _source(self, conf: Config, is_training: bool, frame: DataFrame | None) -> Source:
        if conf.spark is None:
            conf.spark = self._spark
        conf.refresh()
        layer = conf.data_layer(is_training)
        where = f"layer '{layer['name']}' of {conf.net_file}"
        named = layer["source_class"]
        kind, maker = named.removeprefix(_UPSTREAM), None
        if kind not in LAYER_TYPE:
            maker = None if frame is not None else self._maker(named, where)
            kind = ""
        wanted = (LAYER_TYPE[kind],) if kind else tuple(PARAMETER)
        if layer["type"] not in wanted:
            raise FlagError(
                f"{where} has the type {layer['type']}, but {named.rpartition('.')[2]} feeds "
                f"{' and '.join(wanted)} layers"
            )
        return Source(conf, self._spark, is_training, kind, layer, frame, maker)

    def _maker(self, named: str, where: str) -> Any:
        """An instance of the user's class. Raises FlagError."""
        if found := jvm_source(self._spark, named, where):
            return found
        return _user_class(named, where)(self._spark)

    get_source = getSource
    from_data_frame = fromDataFrame


def _user_class(named: str, where: str) -> type[DataSource]:
    """The user's class. Raises FlagError."""
    module, _, name = named.rpartition(".")
    if not module or named.startswith(_UPSTREAM):
        raise FlagError(
            f"{where}: unknown source_class {named}; use one of {', '.join(LAYER_TYPE)}, or a "
            'subclass of hearth.caffeonspark.DataSource by its full name: "my.module.MySource"'
        )
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as error:
        raise FlagError(
            f"{where}: source_class {named} cannot be loaded ({error}): its module must be on the "
            "driver's PYTHONPATH, or among --py-files; for a class in Scala or Java, its jar and "
            "hearth's must be among --jars"
        ) from error
    if not isinstance(found, type) or not issubclass(found, DataSource):
        raise FlagError(
            f"{where}: source_class {named} is not a subclass of hearth.caffeonspark.DataSource"
        )
    if found.makeFrame is DataSource.makeFrame:
        raise FlagError(f"{where}: source_class {named} does not override makeFrame()")
    return found
