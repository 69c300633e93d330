"""A Caffe net trained and applied as stages of a Spark ML Pipeline."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
)

from hearth.caffeonspark import CaffeOnSpark, Config, DataSource
from hearth.caffeonspark.config import Texts, read_texts
from hearth.caffeonspark.history import SCHEMA, Row
from hearth.caffeonspark.jobs import predict_spec
from hearth.errors import HearthError, invalid
from hearth.ml.caffe_rows import BlobColumns, add_blobs
from hearth.ml.training_params import HasValidation
from hearth.spark import stage_columns
from hearth.spark.ml_stage import param

_HasConf: Any = param("conf", "the solver's prototxt, on the driver", TypeConverters.toString)
_HasModelDir: Any = param(
    "modelDir", "folder for models, shared by all hosts", TypeConverters.toString
)
_HasClusterSize: Any = param("clusterSize", "executors that train together", TypeConverters.toInt)
_HasDevices: Any = param("devices", "devices of each executor", TypeConverters.toInt)
_HasMaxIter: Any = param("maxIter", "iterations, instead of the solver's", TypeConverters.toInt)
_HasBaseLr: Any = param("baseLr", "learning rate, instead of the solver's", TypeConverters.toFloat)
_HasBlobs: Any = param("blobs", "blobs that transform() adds", TypeConverters.toListString)


class _Columns(HasFeaturesCol, HasLabelCol, _HasBlobs):
    """The column Params that CaffeEstimator and CaffeModel share."""

    def setFeaturesCol(self, value: str) -> Any:
        """Sets featuresCol: the column to use for the layer's first column (`data`, or its first
        top)."""
        return self._set(featuresCol=value)

    def setLabelCol(self, value: str) -> Any:
        """Sets labelCol: the column to use for the layer's second column (`label`, or its second
        top)."""
        return self._set(labelCol=value)

    def _named(self, dataset: Any, conf: Config, is_training: bool) -> Any:
        """Returns the DataFrame plus the columns that the layer reads."""
        layer = conf.data_layer(is_training)
        message = layer.get(
            "cos_data_param" if layer["type"] == "CoSData" else "memory_data_param", {}
        )
        tops = [top["name"] for top in _tops_of(layer)]
        own = (tops if layer["type"] == "CoSData" else ["data", "label"])[:2]
        given = {}  # the user's columns by the layer's columns
        for name, known in zip(own, (self.featuresCol, self.labelCol), strict=False):
            column = self.getOrDefault(known) if self.isSet(known) else name
            needed = is_training and self.isSet(known)
            if needed or stage_columns.positions(dataset, column):
                given[name] = column
        if self.isSet(self.featuresCol):
            message["dataframe_column_select"] = []
        return stage_columns.renamed(type(self).__name__, dataset, given)


class CaffeEstimator(
    Estimator,  # type: ignore[type-arg]
    _Columns,
    HasValidation,
    _HasConf,
    _HasModelDir,
    _HasClusterSize,
    _HasDevices,
    _HasMaxIter,
    _HasBaseLr,
    DefaultParamsReadable,  # type: ignore[type-arg]
    DefaultParamsWritable,
):
    """An estimator that trains a Caffe net on executors, with hearth.caffeonspark.

    Requires `conf` and `modelDir`; each fit() writes a new model there. Rows where
    validationIndicatorCol is true, or the share of all rows that validationFraction sets, are not
    trained on: the TEST net validates on them as the solver specifies (test_interval, test_iter).
    """

    def __init__(self, conf: str = "", modelDir: str = ""):
        super().__init__()
        self._setDefault(devices=1, blobs=[])
        if conf:
            self._set(conf=conf)
        if modelDir:
            self._set(modelDir=modelDir)

    def _fit(self, dataset: Any) -> CaffeModel:
        """Raises FlagError for an invalid net or solver, HearthError if a rank failed, ValueError
        for missing columns."""
        for known in (self.conf, self.modelDir):
            if not self.isDefined(known):
                raise invalid(f"CaffeEstimator needs {known.name}: {known.doc}")
        model = CaffeModel()
        prefix = f"{self.getModelDir().rstrip('/')}/{model.uid}"
        texts = self._texts(prefix)
        spark = dataset.sparkSession
        flags = {"model": f"{prefix}.caffemodel", "devices": self.getDevices()}
        if self.isSet(self.clusterSize):
            flags["clusterSize"] = self.getClusterSize()
        trained = self._train(dataset, Config.of_texts(spark, flags, texts))
        model._keep(f"{prefix}.caffemodel", texts)
        model._history = trained.history_rows
        return self._copyValues(model)

    def _texts(self, prefix: str) -> Texts:
        """The prototxts with the Params applied; snapshots go next to the model."""
        texts = read_texts(self.getConf())
        changes: dict[str, Any] = {"snapshot_prefix": json.dumps(prefix.removeprefix("file:"))}
        for known, field in ((self.maxIter, "max_iter"), (self.baseLr, "base_lr")):
            if self.isSet(known):
                changes[field] = self.getOrDefault(known)
        return Texts(texts.solver_path, _with(texts.solver, changes), texts.net_path, texts.net)

    def _train(self, dataset: Any, conf: Config) -> CaffeOnSpark:
        sources = DataSource(conf.spark)
        train, validation = self._divided(dataset, _hashed(dataset), 0)
        source = sources.fromDataFrame(conf, self._named(train, conf, True), True)
        cos = CaffeOnSpark(conf.spark)
        if validation is None:
            cos.train(source)
        else:
            held = self._named(validation, conf, False)
            cos.trainWithValidation(source, sources.fromDataFrame(conf, held, False))
        return cos


def _hashed(dataset: Any) -> list[str]:
    """The columns by whose hash rows are divided: all columns that Spark can hash."""
    names = [name.lower() for name in dataset.columns]
    fields = (f for f in dataset.schema.fields if names.count(f.name.lower()) == 1)
    return [f.name for f in fields if not re.search(r"map|variant", f.dataType.simpleString())]


def _tops_of(layer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tops of a CoSData layer."""
    return layer.get("cos_data_param", {}).get("top", [])


def _with(solver: str, changes: Mapping[str, Any]) -> str:
    """A solver's text with some fields replaced."""
    for field, value in changes.items():
        solver = re.sub(rf'\b{field}\s*:\s*("[^"\n]*"|\'[^\'\n]*\'|[^\s,;#]+)[,;]?', "", solver)
        solver = f"{solver.rstrip()}\n{field}: {value}\n"
    return solver


class CaffeModel(
    Model,
    _Columns,
    DefaultParamsReadable,  # type: ignore[type-arg]
    DefaultParamsWritable,
):
    """A trained net; transform() adds the blobs, each an array<float>, to each row.

    Rows that the net cannot use, e.g. with an undecodable image, get nulls.
    """

    modelPath = Param(Params._dummy(), "modelPath", "the .caffemodel", TypeConverters.toString)
    texts = Param(Params._dummy(), "texts", "the prototxts", TypeConverters.toString)

    def __init__(self) -> None:
        """Call CaffeEstimator.fit() or load() instead of this constructor."""
        super().__init__()
        self._setDefault(blobs=[])
        self._history: list[Row] = []

    def _keep(self, path: str, texts: Texts) -> None:
        self._set(modelPath=path, texts=json.dumps(asdict(texts)))

    def getModelPath(self) -> str:
        """modelPath: the path of the .caffemodel."""
        return self.getOrDefault(self.modelPath)

    @property
    def history(self) -> Any:
        """The training's log as a DataFrame: iteration, phase, output, value, seconds,
        images_per_s; loss and learning rate (TRAIN) and each validation's outputs (TEST)."""
        from hearth.spark.session import as_session

        return as_session(None).createDataFrame(self._history, SCHEMA)

    def write(self) -> _ModelWriter:
        """The writer of the model: .overwrite() and .save(path)."""
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> _ModelReader:
        """The reader of saved models: .load(path)."""
        return _ModelReader(cls)

    def _transform(self, dataset: Any) -> Any:
        from pyspark.sql.types import ArrayType, FloatType, StructField, StructType

        spark, blobs = dataset.sparkSession, self.getBlobs()
        if not blobs:
            raise invalid(
                "CaffeModel needs blobs: set it to the names of the TEST net's blobs that "
                "transform() adds"
            )
        stage_columns.check_new("CaffeModel", dataset, blobs)
        texts = Texts(**json.loads(self.getOrDefault(self.texts)))
        flags = {"model": self.getModelPath(), "features": ",".join(blobs)}
        conf = Config.of_texts(spark, flags, texts)
        if "id" in [top["name"] for top in _tops_of(conf.data_layer(False))]:
            raise invalid(
                "CaffeModel identifies rows by a column `id`, so no top of the layer may have that "
                "name: rename the top and its column"
            )
        table, kept = stage_columns.with_copies(dataset)
        rows = self._named(table, conf, False)
        frame = DataSource(spark).fromDataFrame(conf, rows, False).frame(blobs, kept)
        # Omits `id` and SampleID, because the tasks number the rows.
        read = tuple(name for name in frame.columns if name not in (*kept, "id", "SampleID"))
        types = "".join(frame.schema[name].json() for name in read)
        spec = BlobColumns(predict_spec(conf, "features", spark, types), read, kept)
        made = [StructField(blob, ArrayType(FloatType())) for blob in blobs]
        schema = StructType([*(frame.schema[name] for name in kept), *made])
        task = partial(add_blobs, spec)
        return frame.mapInArrow(task, schema).toDF(*dataset.columns, *blobs)


class _ModelWriter(DefaultParamsWriter):
    """A writer of a CaffeModel: its Params, the .caffemodel and the history."""

    def saveImpl(self, path: str) -> None:
        super().saveImpl(path)
        spark = self.sparkSession
        model: Any = self.instance
        _copy(spark, model.getModelPath(), f"{path}/net.caffemodel")
        history = spark.createDataFrame(model._history, SCHEMA)
        history.coalesce(1).write.parquet(f"{path}/history")


class _ModelReader(DefaultParamsReader):  # type: ignore[type-arg]
    def load(self, path: str) -> Any:
        model = super().load(path)
        rows = self.sparkSession.read.parquet(f"{path}/history").collect()
        model._history = [tuple(row) for row in rows]
        return model._set(modelPath=f"{path}/net.caffemodel")


def _copy(spark: Any, source: str, target: str) -> None:
    """Copies a file within or between Hadoop's file systems. Raises HearthError."""
    from hearth.files.hadoop_files import HadoopFiles

    files = HadoopFiles.of(spark)
    if files is None:
        raise HearthError(
            f"CaffeModel is saved with a copy of {source}, which Spark Connect cannot make: save "
            "it in a classic session"
        )
    files.copy(source, target)
