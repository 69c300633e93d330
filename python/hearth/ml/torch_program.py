"""What TorchEstimator's nodes and TorchModel's tasks run."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.ml.training_spec import TrainingCode, TrainingSpec, epoch_line, loader_map

if TYPE_CHECKING:
    import pyarrow as pa

KEPT = 2  # checkpoints


def train(given: tuple[TrainingSpec, bytes, bytes], ctx: Any) -> None:
    """Runs on every rank; rank 0 gives the weights, what the outputs are, and the history.

    `given`: the training, the pickled TrainingCode, and the weights to begin with, or b"".
    """
    import torch.distributed as dist

    from hearth.ml.torch_training import Trainer
    from hearth.torch import returned

    spec, pickled, weights = given
    code: TrainingCode = pickle.loads(pickled)
    dist.init_process_group(ctx.backend)
    initial = returned.loaded(weights) if weights else None
    trainer = Trainer(code, spec, _device(spec.device, ctx), initial)
    options = {"seed": spec.seed, "uneven": "weight", "workers": spec.threads}
    options |= {"map": loader_map(code.transformation)}
    options |= {"pin_memory": trainer.device.type == "cuda"}
    loader = ctx.dataset("train", spec.batch_size, shuffle=spec.shuffle, **options)
    held = None
    if spec.validates:
        held = ctx.dataset("validation", spec.batch_size, shuffle=False, **options)
    if spec.resumes:
        ctx.restore(**trainer.parts(), data=loader)
    trainer.fit(loader, held, partial(_after_epoch, ctx, trainer, loader))
    if ctx.rank == 0 and trainer.run["output"]:
        returned.give(ctx, _found(trainer))
    dist.destroy_process_group()


def _found(trainer: Any) -> dict[str, Any]:
    run = trainer.run
    best = run["stop"]["best_epoch"] if trainer.best is not None else -1
    state = {name: value.cpu() for name, value in trainer.model.state_dict().items()}
    early = bool(run["stopped"]) and run["epoch"] < trainer.spec.epochs
    summary = {"history": run["history"], "best_epoch": best, "stopped_early": early}
    return {"state": state, "output": run["output"], "summary": summary}


def _after_epoch(ctx: Any, trainer: Any, loader: Any, row: dict[str, Any]) -> None:
    """Makes a checkpoint, and tells the driver of the epoch."""
    spec = trainer.spec
    numbers = {name: value for name, value in row.items() if isinstance(value, float)}
    ctx.report(step=trainer.run["step"], **numbers)
    if spec.resumes:
        ctx.checkpoint(trainer.run["step"], keep=KEPT, **trainer.parts(), data=loader)
    if spec.verbose and ctx.rank == 0:
        ctx.mgr.warn(epoch_line(row, spec.epochs))


def _device(name: str, ctx: Any) -> Any:
    """Raises ValueError where the node has no such device."""
    import torch

    device = ctx.device if name == "auto" else torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device is {name!r}, but this node sees no GPU: set spark.task.resource.gpu.amount, "
            "or device='auto'"
        )
    return device


@dataclass(frozen=True)
class Prediction:
    """A trained model, as it travels to the tasks.

    `key` tells models apart; `program`: pickled code and arguments of the model; `inputs`: names
    for messages; `read`: the columns with their values.
    """

    key: str
    program: bytes
    state: bytes
    inputs: tuple[str, ...]
    read: tuple[str, ...]
    keep: tuple[str, ...]
    outputs: tuple[str, ...]
    batch_size: int


_loaded: dict[str, Any] = {}  # by the model's key


def _model(spec: Prediction) -> Any:
    """The model, kept by this worker; another one takes its place."""
    from hearth.torch import returned

    if spec.key not in _loaded:
        _loaded.clear()
        make_model, arguments = pickle.loads(spec.program)
        model = make_model(**arguments)
        model.load_state_dict(returned.loaded(spec.state))
        _loaded[spec.key] = model.eval()
    return _loaded[spec.key]


def predict(spec: Prediction, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of transform(): a minibatch never crosses an Arrow batch."""
    import pyarrow as pa
    import torch

    from hearth.ml.torch_batches import as_tensor, float_kind, outputs_of, placed
    from hearth.rows.dense_arrays import dense_array
    from hearth.rows.results import to_arrow
    from hearth.torch import datasets

    model = _model(spec)
    cpu, kind = torch.device("cpu"), float_kind(model)
    for batch in batches:
        for start in range(0, batch.num_rows, spec.batch_size):
            rows = batch.slice(start, spec.batch_size)
            inputs = []
            for name, read in zip(spec.inputs, spec.read, strict=True):
                values = datasets.as_tensor(dense_array(rows.column(read), name), name)
                inputs.append(placed(as_tensor(values, name), cpu, kind, name))
            with torch.inference_mode():
                found = outputs_of(model(*inputs), rows.num_rows)
            _check_count(spec, found)
            # numpy has no bfloat16.
            found = [x.float() if x.dtype == torch.bfloat16 else x for x in found]
            added = [to_arrow(x.numpy()) for x in found]
            arrays = [*(rows.column(name) for name in spec.keep), *added]
            yield pa.RecordBatch.from_arrays(arrays, names=[*spec.keep, *spec.outputs])


def _check_count(spec: Prediction, found: list[Any]) -> None:
    if len(found) != len(spec.outputs):
        raise ValueError(
            f"the model gives {len(found)} outputs for the columns {', '.join(spec.outputs)}: set "
            "outputCols to one name for each"
        )
