"""The Params of estimators that train by epochs, and the columns that they read."""

from __future__ import annotations

import json
from typing import Any

from pyspark.ml.param import TypeConverters
from pyspark.ml.param.shared import (
    HasFeaturesCol,
    HasInputCols,
    HasLabelCol,
    HasOutputCol,
    HasSeed,
    HasValidationIndicatorCol,
)

from hearth.errors import invalid
from hearth.spark import stage_columns
from hearth.spark.ml_stage import all_of, param


def _json_dict(value: Any) -> dict[str, Any]:
    """A dict to save with the Params. Raises TypeError for other values."""
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return dict(json.loads(json.dumps(value)))
    raise TypeError(f"{value!r} is not a dict of keyword arguments that JSON can hold")


_INT, _FLOAT, _TEXT = TypeConverters.toInt, TypeConverters.toFloat, TypeConverters.toString
_FLAG, _TEXTS, _FLOATS = (
    TypeConverters.toBoolean,
    TypeConverters.toListString,
    TypeConverters.toListFloat,
)
# Params by the names that other libraries and pyspark.ml use for them.
_ALIASES = {
    "featuresCols": "inputCols",
    "numWorkers": "workers",
    "validationCol": "validationIndicatorCol",
    "checkpointDir": "storeDir",
}
_CHOICES = {
    "precision": ("float32", "bf16", "fp16"),
    "monitorMode": ("auto", "min", "max"),
    "schedulerInterval": ("epoch", "step"),
}
_LEAST = {"batchSize": 1, "epochs": 1, "workers": 1, "accumulationSteps": 1, "patience": 0}

HasValidationFraction: Any = param(
    "validationFraction", "share of the rows to validate on, chosen by their hash", _FLOAT
)


class HasValidation(HasValidationIndicatorCol, HasValidationFraction):
    """Params that select rows for validation instead of training, by a boolean column or as a share
    of all rows."""

    def setValidationIndicatorCol(self, value: str) -> Any:
        """Sets validationIndicatorCol: a boolean column, true for rows to validate on."""
        return self._set(validationIndicatorCol=value)

    def _validates(self) -> bool:
        return self.isSet(self.validationIndicatorCol) or self.isSet(self.validationFraction)

    def _divided(self, dataset: Any, names: list[str], seed: int) -> tuple[Any, Any]:
        """(the rows to train on, the rows to validate on or None). Raises ValueError for invalid
        Params."""
        stage = type(self).__name__
        by_column = self.isSet(self.validationIndicatorCol)
        if by_column and self.isSet(self.validationFraction):
            raise invalid(
                f"{stage} has validationIndicatorCol and validationFraction: set one of them"
            )
        if by_column:
            name = self.getOrDefault(self.validationIndicatorCol)
            return stage_columns.divided(stage, dataset, name)
        if not self.isSet(self.validationFraction):
            return dataset, None
        share = self.getOrDefault(self.validationFraction)
        if not 0 < share < 1:
            raise invalid(f"validationFraction is {share:g}: it must lie between 0 and 1")
        return stage_columns.divided_by_hash(stage, dataset, names, share, seed)


_NetParams: Any = all_of(
    param("outputCols", "columns for the model's outputs, if it has several", _TEXTS),
    param("batchSize", "rows of a minibatch on each worker", _INT),
)


class HasNetColumns(
    HasInputCols,
    HasFeaturesCol,
    HasOutputCol,
    _NetParams,
):
    """The column Params that an estimator and its model share."""

    def setInputCols(self, value: list[str]) -> Any:
        """Sets inputCols: the columns that are the model's arguments, in order."""
        return self._set(inputCols=value)

    def setFeaturesCols(self, value: list[str]) -> Any:
        """The same as setInputCols()."""
        return self._set(inputCols=value)

    def setFeaturesCol(self, value: str) -> Any:
        """Sets featuresCol: the column that is the model's only argument."""
        return self._set(featuresCol=value)

    def setOutputCol(self, value: str) -> Any:
        """Sets outputCol: the column for the model's output."""
        return self._set(outputCol=value)

    def _inputs(self, dataset: Any) -> list[str]:
        """The columns that are the model's arguments. Raises ValueError if none is set."""
        if self.isSet(self.inputCols):
            return list(self.getInputCols())
        name = self.getFeaturesCol()
        if self.isSet(self.featuresCol) or stage_columns.positions(dataset, name):
            return [name]
        raise invalid(
            f"{type(self).__name__} has no input: set inputCols or featuresCol, because the "
            f"DataFrame has no column {name!r}, the default of featuresCol; it has "
            f"{', '.join(dataset.columns)}"
        )

    def _outputs(self) -> list[str]:
        if self.isSet(self.outputCols):
            return list(self.getOrDefault(self.outputCols))
        return [self.getOutputCol()]

    def _set_all(self, params: dict[str, Any]) -> None:
        """Sets Params by name. Raises TypeError for unknown ones."""
        for name, value in params.items():
            name = _ALIASES.get(name, name)
            if not self.hasParam(name):
                raise TypeError(f"{type(self).__name__} has no Param {name!r}")
            self._set(**{name: value})


_TrainingParams: Any = all_of(
    param("labelCols", "the label columns, if there are several", _TEXTS),
    param("weightCol", "the column with the weight of a row", _TEXT),
    param("lossWeights", "factors of the losses, if there are several", _FLOATS),
    param("epochs", "number of passes over the rows", _INT),
    param("learningRate", "the optimizer's learning rate", _FLOAT),
    param("workers", "nodes that train together", _INT),
    param("shuffle", "whether to shuffle the rows in each epoch", _FLAG),
    param("modelArgs", "keyword arguments of the model's function", _json_dict),
    param("optimizerArgs", "keyword arguments of the optimizer", _json_dict),
    param("accumulationSteps", "minibatches of each step of the optimizer", _INT),
    param("gradientClipNorm", "limit of the global gradient norm", _FLOAT),
    param("gradientClipValue", "limit of each gradient's absolute value", _FLOAT),
    param("precision", "of the computation: float32, bf16 or fp16", _TEXT),
    param("device", "auto, cpu or cuda", _TEXT),
    param("patience", "epochs without improvement before training stops; 0: off", _INT),
    param("monitor", "the figure that decides which epoch is best", _TEXT),
    param("monitorMode", "min, max, or auto (by the figure's name)", _TEXT),
    param("minDelta", "smallest change that counts as an improvement", _FLOAT),
    param("restoreBest", "whether early stopping restores the best epoch's weights", _FLAG),
    param("loaderThreads", "threads that run the transformation", _INT),
    param("schedulerInterval", "when the scheduler steps: epoch or step", _TEXT),
    param("storeDir", "folder for checkpoints, from which an interrupted fit resumes", _TEXT),
    param("checkpointSteps", "steps of the optimizer between checkpoints in an epoch", _INT),
    param("verbose", "whether to print a line for each epoch", _FLAG),
)


class HasTraining(
    HasNetColumns,
    HasLabelCol,
    HasSeed,
    HasValidation,
    _TrainingParams,
):
    """The Params of TorchEstimator and KerasEstimator."""

    def setLabelCol(self, value: str) -> Any:
        """Sets labelCol: the column passed to the loss as its second argument."""
        return self._set(labelCol=value)

    def setSeed(self, value: int) -> Any:
        """Sets seed: for the order of rows and for random numbers, such as initial weights."""
        return self._set(seed=value)

    def setNumWorkers(self, value: int) -> Any:
        """The same as setWorkers()."""
        return self._set(workers=value)

    def _set_training_defaults(self) -> None:
        self._setDefault(
            outputCol="output",
            labelCol="label",
            batchSize=32,
            epochs=1,
            workers=1,
            seed=0,
            shuffle=True,
            modelArgs={},
            optimizerArgs={},
            lossWeights=[],
            accumulationSteps=1,
            precision="float32",
            device="auto",
            patience=0,
            monitorMode="auto",
            minDelta=0.0,
            restoreBest=True,
            schedulerInterval="epoch",
            loaderThreads=0,
            checkpointSteps=0,
            verbose=False,
        )

    def _labels(self) -> list[str]:
        if self.isSet(self.labelCols):
            return list(self.getOrDefault(self.labelCols))
        return [self.getLabelCol()]

    def _given(self, name: str, otherwise: Any) -> Any:
        known = self.getParam(name)
        return self.getOrDefault(known) if self.isDefined(known) else otherwise

    def _check_params(self) -> None:
        """Raises ValueError for invalid values."""
        for name, choices in _CHOICES.items():
            if (value := self.getOrDefault(name)) not in choices:
                raise invalid(f"{name} is {value!r}: it must be one of {', '.join(choices)}")
        for name, least in _LEAST.items():
            if (value := self.getOrDefault(name)) < least:
                raise invalid(f"{name} is {value}: it must be at least {least}")
