"""A Keras 3 model trained and applied as stages of a Spark ML Pipeline."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.ml.param import TypeConverters

from hearth.ml import keras_program
from hearth.ml.saved_stages import StageFiles
from hearth.ml.training_spec import TrainingCode, TrainingSpec
from hearth.ml.training_stages import TrainedModel, TrainingEstimator
from hearth.spark.ml_stage import param

_ARCHIVE = "model.keras"
HasBackend: Any = param("backend", "of Keras: tensorflow, torch or jax", TypeConverters.toString)


class KerasEstimator(TrainingEstimator, HasBackend):
    """An estimator that trains a Keras 3 model on nodes on Spark's executors, which average their
    gradients.

    Columns of numbers, arrays and vectors of one length become arrays; doubles are converted to
    Keras' float type, and bytes of one length to uint8. A null in one of these columns is an error,
    and so is a loss that is not finite.
    """

    def __init__(
        self,
        model: Any = None,
        loss: Any = None,
        optimizer: Any = None,
        *,
        metrics: Sequence[Any] = (),
        callbacks: Sequence[Any] = (),
        scheduler: Any = None,
        transformation: Any = None,
        customObjects: Mapping[str, Any] | None = None,
        initialModel: Any = None,
        **params: Any,
    ):
        """Arguments other than Params are code, which is pickled and saved with the stage.

        Args:
            model: a keras.Model, or a function: model(**modelArgs) returns the keras.Model, on
                every worker with the same random seed.
            loss: as compile() accepts it; for several outputs a list with a loss for each. Loss and
                optimizer may be None if the model is compiled.
            optimizer: its name, or a function: optimizer(learning_rate=…, **optimizerArgs).
            metrics: as compile() accepts them.
            callbacks: Keras callbacks, or functions of the model and the figures of an epoch.
            scheduler: scheduler(epoch, learning_rate), as for
                keras.callbacks.LearningRateScheduler.
            transformation: transformation(batch) changes a minibatch {column: array}, or
                transformation(batch, seeds), with one seed for each row.
            customObjects: the user's classes by name, for load_model().
            initialModel: a KerasModel whose weights are the initial ones.
            params: Params by name.

        Raises:
            TypeError: there is no model, or an unknown Param.
        """
        super().__init__()
        self._setDefault(backend=os.environ.get("KERAS_BACKEND", "tensorflow"))
        if any(value is not None for value in (model, loss, optimizer)):
            if not callable(model):
                raise TypeError(
                    f"KerasEstimator's model is a {type(model).__name__}: pass a keras.Model, or a "
                    "function that makes one on the workers"
                )
            code = TrainingCode(
                model, loss, optimizer, metrics, tuple(callbacks), scheduler, transformation
            )
            self._keep(replace(code, objects=dict(customObjects or {})))
        if initialModel is not None:
            self.setInitialModel(initialModel)
        self._set_all(params)

    def setInitialModel(self, value: KerasModel) -> KerasEstimator:
        """Makes fit() start with the weights of a KerasModel, which is not saved with the stage."""
        self._initial = value._archive
        return self

    def _spec(self, dataset: Any) -> TrainingSpec:
        return replace(super()._spec(dataset), backend=self.getBackend())

    def _train(
        self, spark: Any, spec: TrainingSpec, frames: Mapping[str, Any], store: str
    ) -> dict[str, Any] | None:
        from hearth.cluster import roles
        from hearth.cluster.driver.cluster import Cluster
        from hearth.cluster.driver.plan import Plan
        from hearth.cluster.task.node_job import NodeOptions, NodeProgram

        gpus = 0 if spec.device == "cpu" else None
        options = NodeOptions(background=True, num_gpus=gpus, checkpoint_dir=store)
        template = roles.template_of({"worker": self.getWorkers()})
        of_torch = spec.backend == "torch"
        plan = Plan(
            template,
            options,
            release_port=not of_torch,
            restart=bool(store),
            datasets=frames,
        )
        given = (spec, self._trusted_code(), self._initial, store)
        if of_torch:
            from hearth.torch import TorchCluster

            cluster: Cluster = TorchCluster.of_plan(spark, plan, keras_program.train, given)
        else:
            cluster = Cluster(spark, plan)
            cluster.start(NodeProgram(keras_program.train, given))
        with cluster:  # leaving the block waits for the ranks
            cluster.reports.note_params(self._plain_params())
        return keras_program.result_of(cluster)

    def _new_model(self) -> KerasModel:
        return KerasModel()


class KerasModel(TrainedModel, HasBackend):
    """A trained Keras model; transform() adds a column with the model's output for each row.

    It is saved as a .keras file, without pickles. A model that was loaded as untrusted can be used
    unless it contains user-defined classes or Lambda layers.
    """

    def __init__(self) -> None:
        """Call KerasEstimator.fit() or load() instead of this constructor."""
        super().__init__()
        self._setDefault(backend="tensorflow")
        self._archive = b""

    def module(self) -> Any:
        """The keras.Model with the trained weights, in this process.

        Raises:
            ValueError, TypeError: raised by Keras: the model needs user-defined classes, or runs
                code, but was loaded as untrusted.
        """
        trusted = not self._distrusted
        objects = self._kept() if trusted and self._code else None
        return keras_program.load_archive(self._archive, objects, trusted)

    def _take_trained(self, estimator: TrainingEstimator, found: dict[str, Any]) -> None:
        super()._take_trained(estimator, found)
        self._keep(estimator._kept().objects)
        self._archive = found["archive"]

    def _files(self) -> dict[str, bytes]:
        return {_ARCHIVE: self._archive}

    def _take_files(self, files: StageFiles) -> None:
        self._archive = files.read(_ARCHIVE)

    def _transform(self, dataset: Any) -> Any:
        objects = b"" if self._distrusted else self._code
        given = (self.getBackend(), self._archive, objects, tuple(self._inputs(dataset)))
        make_model = partial(keras_program.predictor_of, *given)
        return self._with_outputs(dataset, make_model)
