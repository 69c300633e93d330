"""User-defined sources in Scala or Java, for command lines and Python programs.

Programs in Scala or Java create their sources themselves and send the rows.
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
    """A source class on the driver's class path; `where` names the layer in messages."""

    spark: SparkSession
    name: str
    where: str

    def makeFrame(self, conf: Config, layer: dict[str, Any], isTraining: bool) -> DataFrame:
        """The source's rows, like DataSource.makeFrame(). Raises FlagError if the class fails."""
        from py4j.protocol import Py4JJavaError
        from pyspark.sql import DataFrame

        settings, layer_id = json.dumps(conf.changed_settings), conf.data_layer_id(isTraining)
        given = (self.name, settings, layer_id, isTraining, self.spark._jsparkSession)
        try:
            frame = _user_sources(self.spark).frame(*given)
        except Py4JJavaError as error:
            raise _flag_error(error, self.where) from error
        return DataFrame(frame, self.spark)


def jvm_source(spark: SparkSession, name: str, where: str) -> JvmSource | None:
    """Finds a source class; None if the driver has no such class, or lacks Hearth's jar.

    Raises:
        FlagError: the class is not a source.
    """
    from py4j.protocol import Py4JJavaError

    own = _user_sources(spark) if hasattr(spark, "_jvm") else None
    try:
        return JvmSource(spark, name, where) if own is not None and own.has(name) else None
    except Py4JJavaError as error:
        raise _flag_error(error, where) from error


def _user_sources(spark: SparkSession) -> Any:
    """The class in Hearth's jar that finds sources; None without the jar."""
    from py4j.java_gateway import JavaPackage

    jvm: Any = spark._jvm
    own = jvm.com.yahoo.ml.caffe.UserSource
    return None if isinstance(own, JavaPackage) else own


def _flag_error(error: Any, where: str) -> FlagError:
    thrown = error.java_exception
    message = thrown.getMessage()
    if thrown.getClass().getName() != "hearth.HearthException":
        message = thrown.toString()
    return FlagError(f"{where}: {message}")
