"""The programs of TorchEstimator's nodes and TorchModel's tasks."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

from hearth.errors import invalid
from hearth.ml.training_spec import TrainingCode, TrainingSpec, loader_map, report_epoch, summary_of
from hearth.torch import returned

KEPT = 2  # number of checkpoints to keep


def train(given: tuple[TrainingSpec, bytes, bytes], ctx: Any) -> None:
    """Runs on every rank; rank 0 returns the weights, the outputs' types, and the history.

    `given`: the training's specification, the pickled TrainingCode, and the initial weights or b"".
    """
    import torch.distributed as dist

    from hearth.ml.torch_training import Trainer

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
    keep = partial(_keep, ctx, trainer, loader)
    trainer.fit(loader, held, partial(_after_epoch, ctx, trainer, keep), keep)
    if ctx.rank == 0 and trainer.run["output"]:
        returned.give(ctx, _found(trainer))
    dist.destroy_process_group()


def _found(trainer: Any) -> dict[str, Any]:
    run = trainer.run
    state = {name: value.cpu() for name, value in trainer.model.state_dict().items()}
    return {"state": state, "output": run["output"], "summary": summary_of(trainer.spec, run)}


def _keep(ctx: Any, trainer: Any, loader: Any) -> None:
    """Makes a checkpoint, if there is a folder for checkpoints."""
    if trainer.spec.resumes:
        ctx.checkpoint(trainer.run["step"], keep=KEPT, **trainer.parts(), data=loader)


def _after_epoch(ctx: Any, trainer: Any, keep: Any, row: dict[str, Any]) -> None:
    """Reports the epoch to the driver, and makes a checkpoint."""
    report_epoch(ctx, trainer.spec, trainer.run["step"], row)
    keep()


def _device(name: str, ctx: Any) -> Any:
    """The torch.device to use. Raises ValueError if the node has no such device."""
    import torch

    device = ctx.device if name == "auto" else torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise invalid(
            f"device is {name!r}, but this node sees no GPU: set spark.task.resource.gpu.amount, "
            "or device='auto'"
        )
    return device


def module_of(program: bytes, state: bytes) -> Any:
    """A trained module. `program`: its pickled function and arguments."""
    make_model, arguments = pickle.loads(program)
    module = make_model(**arguments)
    module.load_state_dict(returned.loaded(state))
    return module
