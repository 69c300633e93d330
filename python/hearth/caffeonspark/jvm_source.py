"""Sources of one's own in Scala or Java, where the program is a command line or one in Python.

A program in Scala or Java makes its sources itself, and sends their rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.config import Config
from hearth.caffeonspark.flags import FlagError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class JvmSource:
    """A class on the driver's class path, by its name; `where` names the layer, for messages."""

    spark: SparkSession
    name: str
    where: str

    def makeFrame(self, conf: Config, layer: dict[str, Any], isTraining: bool) -> DataFrame:
        """Its rows, as DataSource.makeFrame() gives them. Raises FlagError with what it threw."""
        from py4j.protocol import Py4JJavaError
        from pyspark.sql import DataFrame

        settings, layer_id = json.dumps(conf.changed_settings), conf.data_layer_id(isTraining)
        given = (self.name, settings, layer_id, isTraining, self.spark._jsparkSession)
        try:
            frame = _own_sources(self.spark).frame(*given)
        except Py4JJavaError as error:
            raise _told(error, self.where) from error
        return DataFrame(frame, self.spark)


def jvm_source(spark: SparkSession, name: str, where: str) -> JvmSource | None:
    """None where the driver has no class of that name, or no jar of hearth's.

    Raises:
        FlagError: there is one, but it is no source.
    """
    from py4j.protocol import Py4JJavaError

    own = _own_sources(spark) if hasattr(spark, "_jvm") else None
    try:
        return JvmSource(spark, name, where) if own is not None and own.has(name) else None
    except Py4JJavaError as error:
        raise _told(error, where) from error


def _own_sources(spark: SparkSession) -> Any:
    """The jar's class that finds them; None without the jar."""
    from py4j.java_gateway import JavaPackage

    own = spark._jvm.com.yahoo.ml.caffe.OwnSource
    return None if isinstance(own, JavaPackage) else own


def _told(error: Any, where: str) -> FlagError:
    thrown = error.java_exception
    told = thrown.getMessage()
    if thrown.getClass().getName() != "hearth.HearthException":
        told = thrown.toString()
    return FlagError(f"{where}: {told}")
