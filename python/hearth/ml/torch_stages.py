"""A PyTorch module trained and applied as stages of a Spark ML Pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.ml.param import Param, Params, TypeConverters

from hearth.ml import torch_program, weights
from hearth.ml.saved_stages import WEIGHTS, StageFiles
from hearth.ml.training_spec import TrainingCode, TrainingSpec
from hearth.ml.training_stages import TrainedModel, TrainingEstimator
from hearth.torch import returned


class TorchEstimator(TrainingEstimator):
    """An estimator that trains a module with DistributedDataParallel on nodes on Spark's executors.

    Columns of numbers, arrays and vectors of one length become tensors; floats are converted to the
    type of the module's weights, and bytes of one length to uint8. A null in one of these columns
    is an error, and so is a loss that is not finite.
    """

    def __init__(
        self,
        model: Callable[..., Any] | None = None,
        loss: Any = None,
        optimizer: Callable[..., Any] | None = None,
        *,
        metrics: Mapping[str, Any] | Sequence[Any] = (),
        callbacks: Sequence[Any] = (),
        scheduler: Callable[[Any], Any] | None = None,
        transformation: Callable[..., Any] | None = None,
        initialModel: Any = None,
        **params: Any,
    ):
        """Arguments other than Params are code, which is pickled and saved with the stage.

        Args:
            model: model(**modelArgs) returns the torch.nn.Module; called on every worker with the
                same random seed.
            loss: loss(outputs, labels) returns the mean over the rows, such as
                torch.nn.functional.cross_entropy; several outputs and labels are passed as further
                arguments. Or a list with one loss for each output and label.
            optimizer: optimizer(parameters, lr=learningRate, **optimizerArgs): a class of
                torch.optim, or a functools.partial of one.
            metrics: functions of outputs and labels that return the mean over the rows, or objects
                with update() and compute(), such as those of torchmetrics; by name, or in a list.
            callbacks: functions of the trainer and the figures of an epoch, called at the epoch's
                end, or objects with some of on_train_begin, on_epoch_begin, on_batch_end,
                on_train_end (trainer) and on_epoch_end (trainer, figures). They are called on each
                worker; trainer.stop() ends the training.
            scheduler: scheduler(optimizer) returns a scheduler of torch.optim.lr_scheduler.
            transformation: transformation(batch) changes a minibatch {column: tensor}, or
                transformation(batch, seeds), with one seed for each row.
            initialModel: a TorchModel, or a state_dict, with the initial weights.
            params: Params by name.

        Raises:
            TypeError: model, loss or optimizer is not callable, or a Param is unknown.
        """
        super().__init__()
        self._setDefault(learningRate=1e-3)
        given = {"model": model, "loss": loss, "optimizer": optimizer}
        if any(value is not None for value in given.values()):
            _check_code(given)
            code = TrainingCode(
                model, loss, optimizer, metrics, tuple(callbacks), scheduler, transformation
            )
            self._keep(code)
        if initialModel is not None:
            self.setInitialModel(initialModel)
        self._set_all(params)

    def setInitialModel(self, value: Any) -> TorchEstimator:
        """Makes fit() start with the weights of a TorchModel, or with a state_dict; not saved with
        the stage."""
        state = value.state_dict() if hasattr(value, "state_dict") else value
        self._initial = returned.dumped(dict(state))
        return self

    def _train(
        self, spark: Any, spec: TrainingSpec, frames: Mapping[str, Any], store: str
    ) -> dict[str, Any] | None:
        from hearth.torch import TorchCluster

        given = (spec, self._trusted_code(), self._initial)
        with TorchCluster.run(
            spark,
            torch_program.train,
            given,
            workers=self.getWorkers(),
            feeds=(),
            datasets=frames,
            gpus_per_worker=0 if spec.device == "cpu" else None,
            restart=bool(store),
            checkpoint_dir=store,
        ) as cluster:  # leaving the block waits for the ranks
            cluster.reports.note_params(self._plain_params())
        found: dict[str, Any] | None = returned.of_rank_0(cluster)
        return found

    def _new_model(self) -> TorchModel:
        return TorchModel()


def _check_code(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        is_module = hasattr(value, "state_dict") and not isinstance(value, type)
        several = list(value) if name == "loss" and isinstance(value, list | tuple) else [value]
        if not all(map(callable, several)) or (name == "model" and is_module):
            raise TypeError(
                f"TorchEstimator's {name} is a {type(value).__name__}: pass a function or "
                "class that is called on the workers"
            )


class TorchModel(TrainedModel):
    """A trained module; transform() adds a column with the module's output for each row."""

    outputKind = Param(
        Params._dummy(), "outputKind", "PyTorch's types of the outputs", TypeConverters.toString
    )
    modelArgs: Any = Param(Params._dummy(), "modelArgs", "arguments of the module's function")

    def __init__(self) -> None:
        """Call TorchEstimator.fit() or load() instead of this constructor."""
        super().__init__()
        self._setDefault(modelArgs={})
        self._state = b""

    def state_dict(self) -> dict[str, Any]:
        """The trained weights, for load_state_dict()."""
        return returned.loaded(self._state)

    def module(self) -> Any:
        """The module with the trained weights, in this process, in eval mode.

        Raises:
            ValueError: the model was loaded as untrusted.
        """
        module = self._kept()(**self.getOrDefault(self.modelArgs))
        module.load_state_dict(self.state_dict())
        return module.eval()

    def setModel(self, model: Callable[..., Any]) -> TorchModel:
        """Sets the function that returns the module, which replaces the saved function."""
        self._keep(model)
        return self

    def _take_trained(self, estimator: TrainingEstimator, found: dict[str, Any]) -> None:
        super()._take_trained(estimator, found)
        self._keep(estimator._kept().model)
        self._set(outputKind=";".join(kind for kind, _ in found["output"]))
        self._state = returned.dumped(found["state"])

    def _files(self) -> dict[str, bytes]:
        return {WEIGHTS: weights.packed(self.state_dict())}

    def _take_files(self, files: StageFiles) -> None:
        self._state = returned.dumped(weights.unpacked(files.read(WEIGHTS)))

    def _transform(self, dataset: Any) -> Any:
        from pyspark import cloudpickle

        program = cloudpickle.dumps((self._kept(), self.getOrDefault(self.modelArgs)))
        make_model = partial(torch_program.module_of, program, self._state)
        return self._with_outputs(dataset, make_model)
