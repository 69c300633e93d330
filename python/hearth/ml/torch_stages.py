"""A PyTorch module trained and applied as stages of a Spark ML Pipeline."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasInputCols, HasLabelCol, HasOutputCol, HasSeed
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter

from hearth.rows.results import spark_type
from hearth.spark import stage_columns
from hearth.spark.ml_stage import SavedStage, param

HasBatchSize = param("batchSize", "rows of a minibatch, of each worker", TypeConverters.toInt)
_HasEpochs = param("epochs", "how often each row is trained on", TypeConverters.toInt)
_HasLearningRate = param("learningRate", "the optimizer's lr", TypeConverters.toFloat)
_HasWorkers = param("workers", "nodes that train together", TypeConverters.toInt)

# Bytes of a row of a saved state; Spark has none beyond 2 GB.
_PIECE = 16 << 20


class _Columns(HasInputCols, HasOutputCol, HasBatchSize):
    """What estimator and model share."""

    def setInputCols(self, value: list[str]) -> Any:
        """Sets inputCols: the columns that are the module's arguments, in their order."""
        return self._set(inputCols=value)

    def setOutputCol(self, value: str) -> Any:
        """Sets outputCol: the column for what the module gives."""
        return self._set(outputCol=value)


class TorchEstimator(
    Estimator, _Columns, HasLabelCol, HasSeed, _HasEpochs, _HasLearningRate, _HasWorkers, SavedStage
):
    """Trains a module by DistributedDataParallel on nodes beside Spark's executors.

    Columns of numbers, arrays and vectors of one length become tensors, those of floating point in
    the type of the module's weights; bytes of one length become uint8. A null in one of them is an
    error, and so is a loss that is no finite number.
    """

    def __init__(
        self,
        model: Callable[[], Any] | None = None,
        loss: Callable[[Any, Any], Any] | None = None,
        optimizer: Callable[..., Any] | None = None,
    ):
        """All three are kept, pickled, and saved with the stage.

        Args:
            model: makes the torch.nn.Module; called on every worker with the same random seed.
            loss: loss(outputs, labels): the mean over the rows, torch.nn.functional.cross_entropy
                for instance.
            optimizer: optimizer(parameters, lr=learningRate): a class of torch.optim, or a
                functools.partial of one.

        Raises:
            TypeError: one of them cannot be called.
        """
        super().__init__()
        self._setDefault(
            outputCol="output",
            labelCol="label",
            batchSize=32,
            epochs=1,
            learningRate=1e-3,
            workers=1,
            seed=0,
        )
        if (model, loss, optimizer) != (None, None, None):
            given = {"model": model, "loss": loss, "optimizer": optimizer}
            for name, value in given.items():
                is_module = hasattr(value, "state_dict") and not isinstance(value, type)
                if not callable(value) or (name == "model" and is_module):
                    raise TypeError(
                        f"TorchEstimator's {name} is a {type(value).__name__}: give a function or "
                        "class that is called on the workers"
                    )
            self._keep(model, loss, optimizer)

    def setLabelCol(self, value: str) -> TorchEstimator:
        """Sets labelCol: the column that the loss takes as its second argument."""
        return self._set(labelCol=value)

    def setSeed(self, value: int) -> TorchEstimator:
        """Sets seed: of PyTorch's random numbers, the module's first weights for instance."""
        return self._set(seed=value)

    def _fit(self, dataset: Any) -> TorchModel:
        """Raises NodeError where a worker fails, ValueError for columns that are not there."""
        from hearth.ml import torch_program
        from hearth.torch import TorchCluster, returned

        inputs, label = _inputs_of(self), self.getLabelCol()
        rows = stage_columns.stage_input("TorchEstimator", dataset, [*inputs, label])
        spec = torch_program.Training(
            self.getOrDefault(self.program),
            tuple(inputs),
            label,
            self.getBatchSize(),
            self.getLearningRate(),
            self.getSeed(),
        )
        workers, spark = self.getWorkers(), dataset.sparkSession
        try:
            with TorchCluster.run(spark, torch_program.train, spec, workers=workers) as cluster:
                # So that every worker has a share, whatever the DataFrame's partitions.
                cluster.train(rows.repartition(workers), epochs=self.getEpochs())
        except Exception as error:
            if any(stage_columns.NULL in str(each) for each in (error, error.__cause__)):
                stage_columns.refuse_nulls("TorchEstimator", dataset, [*inputs, label])
            raise
        found = returned.take(cluster)
        if found is None:
            raise ValueError("TorchEstimator has no rows to train on: the DataFrame is empty")
        model = TorchModel()
        model._set(program=spec.program, outputType=spark_type(found["kind"], found["depth"]))
        model._set(outputKind=found["kind"])
        model._state = returned.dumped(found["state"])
        return self._copyValues(model)


class TorchModel(Model, _Columns, SavedStage):
    """A trained module: transform() adds a column with what it gives for each row."""

    outputType = Param(
        Params._dummy(), "outputType", "Spark's type of the output", TypeConverters.toString
    )
    outputKind = Param(
        Params._dummy(), "outputKind", "PyTorch's type of it", TypeConverters.toString
    )

    def __init__(self) -> None:
        """Of TorchEstimator.fit() and load() alone."""
        super().__init__()
        self._setDefault(outputCol="output", batchSize=32)
        self._state = b""

    def state_dict(self) -> dict[str, Any]:
        """The trained weights, for load_state_dict()."""
        from hearth.torch import returned

        return returned.loaded(self._state)

    def module(self) -> Any:
        """The module with the trained weights, in this process, ready to be applied."""
        module = self._kept()[0]()
        module.load_state_dict(self.state_dict())
        return module.eval()

    def write(self) -> _StateWriter:
        """The writer of the model: .overwrite() and .save(path)."""
        return _StateWriter(self)

    @classmethod
    def read(cls) -> _StateReader:
        """The reader of such a model: .load(path)."""
        return _StateReader(cls)

    def _transform(self, dataset: Any) -> Any:
        from pyspark.sql.types import StructField, StructType, _parse_datatype_string

        from hearth.ml import torch_program

        inputs, output = _inputs_of(self), self.getOutputCol()
        table = stage_columns.stage_frame("TorchModel", dataset, inputs)
        stage_columns.check_new("TorchModel", dataset, [output])
        program = self.getOrDefault(self.program)
        spec = torch_program.Prediction(
            hashlib.sha256(program.encode() + self._state).hexdigest(),
            program,
            self._state,
            tuple(inputs),
            table.read,
            table.kept,
            output,
            self.getOrDefault(self.outputKind),
            self.getBatchSize(),
        )
        kind = _parse_datatype_string(self.getOrDefault(self.outputType))
        schema = StructType([*table.kept_fields(), StructField(output, kind, True)])
        found = table.frame.mapInArrow(partial(torch_program.predict, spec), schema)
        return found.toDF(*dataset.columns, output)


def _inputs_of(stage: Any) -> list[str]:
    if not stage.isDefined(stage.inputCols):
        raise ValueError(f"{type(stage).__name__} needs inputCols: the columns that are its input")
    return stage.getInputCols()


class _StateWriter(DefaultParamsWriter):
    """The stage's Params, and beside them the weights, in any file system of Spark's."""

    def saveImpl(self, path: str) -> None:
        super().saveImpl(path)
        state = self.instance._state
        rows = [(i, bytearray(state[i : i + _PIECE])) for i in range(0, len(state), _PIECE)]
        frame = self.sparkSession.createDataFrame(rows, "at bigint, bytes binary")
        frame.coalesce(1).write.parquet(f"{path}/state")


class _StateReader(DefaultParamsReader):
    def load(self, path: str) -> Any:
        stage = super().load(path)
        rows = self.sparkSession.read.parquet(f"{path}/state").collect()
        stage._state = b"".join(bytes(row.bytes) for row in sorted(rows, key=lambda row: row.at))
        return stage
