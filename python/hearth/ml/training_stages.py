"""Base classes of estimators that train on executors by epochs, and of their models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters

from hearth.errors import invalid
from hearth.ml.prediction import with_outputs
from hearth.ml.predictors import program_of
from hearth.ml.saved_stages import CodeStage
from hearth.ml.summary import TrainingSummary
from hearth.ml.training_params import HasNetColumns, HasTraining
from hearth.ml.training_slots import exclusive_store, training_slots
from hearth.ml.training_spec import TrainingSpec
from hearth.monitoring.mlflow_run import log_model
from hearth.rows.results import spark_type
from hearth.spark import stage_columns

# The field of TrainingSpec for each of these Params.
_FIELDS = {
    "weightCol": "weight", "batchSize": "batch_size", "epochs": "epochs", "seed": "seed",
    "learningRate": "learning_rate", "shuffle": "shuffle", "accumulationSteps": "accumulation",
    "gradientClipNorm": "clip_norm", "gradientClipValue": "clip_value", "precision": "precision",
    "device": "device", "patience": "patience", "monitor": "monitor",
    "monitorMode": "monitor_mode", "minDelta": "min_delta", "restoreBest": "restore_best",
    "schedulerInterval": "scheduler_interval", "modelArgs": "model_args",
    "optimizerArgs": "optimizer_args", "loaderThreads": "threads",
    "checkpointSteps": "checkpoint_steps", "verbose": "verbose",
}  # fmt: skip


class TrainingEstimator(Estimator, HasTraining, CodeStage):  # type: ignore[type-arg]
    """The base class of estimators, with the code of fit() that all frameworks share: columns,
    validation rows, slots, errors."""

    def __init__(self) -> None:
        super().__init__()
        self._set_training_defaults()
        self._is_trial = False  # whether this is a trial of a ParamGrid
        self._initial = b""  # initial weights

    def copy(self, extra: Any = None) -> Self:
        """Like copy() of any stage; a copy with other Params is a trial, which has separate
        checkpoints."""
        that = super().copy(extra)
        that._is_trial = self._is_trial or bool(extra)
        return that

    def fitMultiple(self, dataset: Any, paramMaps: Any) -> Any:
        """Like fitMultiple() of any estimator; each fit is a trial."""
        that = self.copy()
        that._is_trial = True
        return Estimator.fitMultiple(that, dataset, paramMaps)

    def _fit(self, dataset: Any) -> Any:
        """Raises NodeError if a worker fails, ValueError for missing columns, nulls in the columns,
        and invalid Params."""
        self._check_params()
        spec = self._spec(dataset)
        names = [*spec.inputs, *spec.labels, *([spec.weight] if spec.weight else [])]
        frames = self._frames(dataset, names)
        model = self._new_model()
        store = self._given("storeDir", "")
        if store and self._is_trial:
            store = f"{store.rstrip('/')}/fit-{model.uid}"
        try:
            spark = dataset.sparkSession
            with exclusive_store(store), training_slots(spark, self.getWorkers()):
                found = self._train(spark, spec, frames, store)
        except Exception as error:
            if stage_columns.reports_null(error):
                stage_columns.refuse_nulls(type(self).__name__, dataset, names)
            raise
        if found is None:
            raise invalid(
                f"{type(self).__name__} has no rows to train on: the DataFrame is empty, or all of "
                "its rows are for validation"
            )
        model._take_trained(self, found)
        log_model(model._files)
        return self._copyValues(model)

    def _plain_params(self) -> dict[str, Any]:
        """The Params by name, for MLflow; dicts are flattened to their entries."""
        found: dict[str, Any] = {"estimator": type(self).__name__}
        for known, value in self.extractParamMap().items():
            if isinstance(value, dict):
                found |= {f"{known.name}.{key}": each for key, each in value.items()}
            elif value != []:
                found[known.name] = value
        return found

    def _spec(self, dataset: Any) -> TrainingSpec:
        defined = [name for name in _FIELDS if self.isDefined(name)]
        return TrainingSpec(
            inputs=tuple(self._inputs(dataset)),
            labels=tuple(self._labels()),
            validates=self._validates(),
            loss_weights=tuple(self.getOrDefault("lossWeights")),
            resumes=bool(self._given("storeDir", "")),
            **{_FIELDS[name]: self.getOrDefault(name) for name in defined},
        )

    def _frames(self, dataset: Any, names: list[str]) -> dict[str, Any]:
        """The datasets of the training, with the columns that it reads."""
        stage = type(self).__name__
        stage_columns.stage_frame(stage, dataset, names)  # reports missing columns first
        halves = self._divided(dataset, names, self.getSeed())
        kinds = ("train", "validation")
        return {
            kind: stage_columns.stage_input(stage, half, names)
            for kind, half in zip(kinds, halves, strict=True)
            if half is not None
        }

    def _train(
        self, spark: Any, spec: TrainingSpec, frames: Mapping[str, Any], store: str
    ) -> dict[str, Any] | None:
        """The result of rank 0; None if there were no rows."""
        raise NotImplementedError

    def _new_model(self) -> Any:
        raise NotImplementedError


class TrainedModel(Model, HasNetColumns, CodeStage):
    """A trained model with the history of its training."""

    outputType = Param(
        Params._dummy(), "outputType", "Spark's types of the outputs", TypeConverters.toString
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(outputCol="output", batchSize=32)
        self._summary: TrainingSummary | None = None

    @property
    def hasSummary(self) -> bool:
        """Whether the history of the training is known."""
        return self._summary is not None

    @property
    def summary(self) -> TrainingSummary:
        """The history of the training, which is also saved and loaded with the model.

        Raises:
            ValueError: the history is not known.
        """
        if self._summary is None:
            raise invalid(f"this {type(self).__name__} has no summary of its training")
        return self._summary

    @property
    def history(self) -> list[dict[str, Any]]:
        """The figures of each epoch: loss, metrics, val_loss, lr, seconds, rows."""
        return self.summary.history

    def _with_outputs(self, dataset: Any, make_model: Any) -> Any:
        """The rows with a model's outputs. Raises ValueError if the number of output columns does
        not fit."""
        from pyspark.sql.types import StructField, StructType, _parse_datatype_string

        outputs, kinds = self._outputs(), self.getOrDefault(self.outputType).split(";")
        if len(kinds) != len(outputs):
            raise invalid(
                f"the model has {len(kinds)} outputs for the columns {', '.join(outputs)}: set "
                "outputCols to one name for each"
            )
        columns = StructType(
            [
                StructField(name, _parse_datatype_string(kind), True)
                for name, kind in zip(outputs, kinds, strict=True)
            ]
        )
        program = program_of(make_model, None, self._inputs(dataset), outputs)
        return with_outputs(type(self).__name__, dataset, program, columns, self.getBatchSize())

    def _take_trained(self, estimator: TrainingEstimator, found: dict[str, Any]) -> None:
        self._summary = TrainingSummary(**found["summary"])
        self._set(outputType=";".join(spark_type(*kind) for kind in found["output"]))

    def _about(self) -> dict[str, Any]:
        return {"summary": None if self._summary is None else self._summary.to_dict()}

    def _take(self, about: dict[str, Any]) -> None:
        known = about["summary"]
        self._summary = None if known is None else TrainingSummary(**known)
