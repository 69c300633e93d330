"""TensorFlow training and inference as stages of a Spark ML Pipeline.

model = TFEstimator(main_fun, args).setInputMapping({"x": "features"}).setEpochs(2).fit(df)
model.setOutputMapping({"dense_1": "prediction"}).transform(df)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NoReturn

from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters

from hearth.errors import UnimplementedError, invalid
from hearth.spark import stage_columns
from hearth.spark.ml_stage import SavedStage, StageReader
from hearth.tensorflowonspark import TFCluster, util
from hearth.tensorflowonspark.pipeline_params import (
    HasBatchSize,
    HasClusterSize,
    HasEpochs,
    HasExportDir,
    HasGraceSecs,
    HasInputMapping,
    HasInputMode,
    HasMasterNode,
    HasModelDir,
    HasNumPS,
    HasOutputMapping,
    HasProtocol,
    HasReaders,
    HasSignatureDefKey,
    HasSteps,
    HasTagSet,
    HasTensorboard,
    HasTFRecordDir,
    Namespace,
    TFParams,
)
from hearth.tensorflowonspark.pipeline_params import TFTypeConverters as TFTypeConverters


class TFEstimator(
    Estimator["TFModel"],
    TFParams,
    HasInputMapping,
    HasClusterSize,
    HasNumPS,
    HasInputMode,
    HasMasterNode,
    HasProtocol,
    HasGraceSecs,
    HasTensorboard,
    HasModelDir,
    HasExportDir,
    HasTFRecordDir,
    HasBatchSize,
    HasEpochs,
    HasReaders,
    HasSteps,
    SavedStage,
):
    """An estimator that trains on a new cluster; train_fn(args, ctx) is the nodes' main
    function."""

    export_fn = None  # TensorFlow 1 only

    def __init__(self, train_fn: Callable[..., Any] | None, tf_args: Any, export_fn: None = None):
        super().__init__()
        if export_fn is not None:
            raise invalid("export_fn needs TensorFlow 1: export the model in train_fn")
        self._setDefault(
            input_mapping={},
            cluster_size=1,
            num_ps=0,
            driver_ps_nodes=False,
            input_mode=TFCluster.InputMode.SPARK,
            master_node="chief",
            protocol="grpc",
            grace_secs=30,
            tensorboard=False,
            model_dir=None,
            export_dir=None,
            tfrecord_dir=None,
            batch_size=100,
            epochs=1,
            readers=1,
            steps=1000,
        )
        if train_fn is not None:
            self._keep(train_fn, Namespace({} if tf_args is None else tf_args))

    @classmethod
    def read(cls) -> StageReader:
        """A reader of saved estimators."""
        return StageReader(cls, lambda: cls(None, None))

    @property
    def train_fn(self) -> Any:
        """The main function of the nodes."""
        return self._kept()[0]

    @property
    def args(self) -> Namespace:  # type: ignore[override]  # part of the pickled program
        """The arguments for the main function, as given to the constructor."""
        return self._kept()[1]

    def _fit(self, dataset: Any) -> TFModel:
        args = self.merge_args_params()
        rows = dataset
        if names := sorted(args.input_mapping):
            rows = stage_columns.selected("TFEstimator", dataset, names)
        cluster = TFCluster.run(
            dataset.sparkSession.sparkContext,
            self.train_fn,
            args,
            args.cluster_size,
            args.num_ps,
            args.tensorboard,
            TFCluster.InputMode.SPARK,
            master_node=args.master_node,
            driver_ps_nodes=False,
        )
        with cluster:
            cluster.train(rows.rdd, args.epochs)
            cluster.shutdown(grace_secs=args.grace_secs)
        return self._copyValues(TFModel(self.args))


class TFModel(
    Model,
    TFParams,
    HasInputMapping,
    HasOutputMapping,
    HasBatchSize,
    HasModelDir,
    HasExportDir,
    HasSignatureDefKey,
    HasTagSet,
    SavedStage,
):
    """A Spark ML model that applies a SavedModel or a Keras 3 `.keras` file to each row. Each
    Python worker loads the file once."""

    keep_columns = Param(
        Params._dummy(), "keep_columns", "Keep the input's columns", TypeConverters.toBoolean
    )

    def __init__(self, tf_args: Any):
        super().__init__()
        self._setDefault(
            input_mapping={},
            output_mapping={},
            batch_size=100,
            model_dir=None,
            export_dir=None,
            signature_def_key=None,
            tag_set=None,
            keep_columns=False,
        )
        if tf_args is not None:
            self._keep(Namespace(tf_args))

    @property
    def args(self) -> Namespace:  # type: ignore[override]  # part of the pickled program
        """The arguments given to the constructor; none for a loaded model."""
        return self._kept()[0] if self.isSet(self.program) else Namespace({})

    @classmethod
    def read(cls) -> StageReader:
        """A reader of saved models."""
        return StageReader(cls, lambda: cls(None))

    def setKeepColumns(self, value: bool) -> TFModel:
        """Sets keep_columns: transform() keeps the columns of its input."""
        return self._set(keep_columns=value)

    def getKeepColumns(self) -> bool:
        """Whether transform() keeps the columns of its input."""
        return self.getOrDefault(self.keep_columns)

    def _transform(self, dataset: Any) -> Any:
        from pyspark.sql.types import StructType

        from hearth.tensorflowonspark import pipeline_model

        args = self.merge_args_params()
        path = args.export_dir or args.model_dir
        if not path:
            raise invalid("TFModel needs export_dir, or model_dir: the path of the saved model")
        inputs = sorted(args.input_mapping)
        table = stage_columns.stage_frame("TFModel", dataset, inputs)
        spec = pipeline_model.ModelSpec(
            path=path,
            signature=args.signature_def_key or "serving_default",
            tags=tuple((args.tag_set or "serve").split(",")),
            inputs=dict(args.input_mapping),
            outputs=dict(args.output_mapping),
            batch_size=args.batch_size,
            kept=table.kept if args.keep_columns else (),
            read=dict(zip(inputs, table.read, strict=True)),
        )
        spec, fields = pipeline_model.described(spec, dataset.sparkSession)
        names = [field.name for field in fields]
        reserved: list[str] | None = None if args.keep_columns else []
        stage_columns.check_new("TFModel", dataset, names, reserved)
        if not args.keep_columns:
            task = partial(pipeline_model.predict, spec)
            return table.only_read().mapInArrow(task, StructType(fields))
        schema = StructType([*table.kept_fields(), *fields])
        found = table.frame.mapInArrow(partial(pipeline_model.predict, spec), schema)
        return found.toDF(*dataset.columns, *names)


def single_node_env(args: Any) -> None:
    """Lets this process use the GPUs that `args` request. See util.single_node_env."""
    if isinstance(args, list):
        import sys

        sys.argv = args
    util.single_node_env(getattr(args, "num_gpus", 1))


def get_meta_graph_def(saved_model_dir: str, tag_set: str) -> NoReturn:
    """TensorFlow 1 only. Raises NotImplementedError."""
    raise UnimplementedError("DEPRECATED: TensorFlow 2 has signatures: tf.saved_model.load(dir)")


def yield_batch(iterable: Iterable[Any], batch_size: int, num_tensors: int = 1) -> Iterator[Any]:
    """Batches of rows, each a list of `num_tensors` lists of values; the last may be shorter."""
    tensors: list[list[Any]] = [[] for _ in range(num_tensors)]
    for row in iterable:
        if row is None:
            break
        for values, value in zip(tensors, row, strict=False):
            values.append(value)
        if len(tensors[0]) >= batch_size:
            yield tensors
            tensors = [[] for _ in range(num_tensors)]
    if tensors[0]:
        yield tensors
