"""The programs of KerasEstimator's nodes and KerasModel's tasks."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hearth.cluster import results
from hearth.ml.training_spec import TrainingCode, TrainingSpec, loader_map, report_epoch, summary_of

KEPT = 2  # number of checkpoints to keep


def train(given: tuple[TrainingSpec, bytes, bytes, str], ctx: Any) -> None:
    """Runs on every rank; rank 0 returns the model as a .keras file, and the history.

    `given`: the training's specification, the pickled TrainingCode, an initial .keras file or b"",
    and the folder for checkpoints or "".
    """
    spec, pickled, initial, folder = given
    use_backend(spec.backend)
    from hearth.data.loader import Loader
    from hearth.ml.keras_ranks import ranks_of
    from hearth.ml.keras_training import KerasTrainer

    ranks = ranks_of(spec.backend, ctx)
    code: TrainingCode = pickle.loads(pickled)
    trainer = KerasTrainer(code, spec, ranks)
    if initial:
        trainer.model.set_weights(load_archive(initial, code.objects, True).get_weights())
    options: dict[str, Any] = {
        "seed": spec.seed,
        "map": loader_map(code.transformation),
        "workers": spec.threads,
    }
    open_loader = partial(ctx._loader, Loader)  # its loaders yield arrays, even with a TorchContext
    how = {**options, "shuffle": spec.shuffle}
    loader = open_loader("train", spec.batch_size, None, how)
    held = None
    if spec.validates:
        how = {**options, "shuffle": False, "uneven": "weight"}
        held = open_loader("validation", spec.batch_size, None, how)
    kept = _Checkpoints(ctx, folder, trainer, loader) if folder else None
    if kept is not None:
        kept.restore()
    trainer.fit(loader, held, partial(_after_epoch, ctx, trainer, kept))
    outputs = trainer.outputs()
    if ctx.share()[0] == 0 and outputs:
        about = {"output": outputs, "summary": summary_of(spec, trainer.run)}
        give(ctx, about, trainer.archive())


def use_backend(name: str) -> None:
    """Selects Keras' backend, in a process that has not loaded Keras."""
    os.environ["KERAS_BACKEND"] = name


def _after_epoch(ctx: Any, trainer: Any, kept: Any, row: dict[str, Any]) -> None:
    report_epoch(ctx, trainer.spec, trainer.run["step"], row)
    if kept is not None:
        kept.save()


class _Checkpoints:
    """The checkpoints of a training, which rank 0 writes, and reads for all ranks. Not
    thread-safe."""

    def __init__(self, ctx: Any, folder: str, trainer: Any, loader: Any):
        from hearth.checkpoints.checkpoint_folder import CheckpointFolder
        from hearth.files.uri import scheme

        uri = folder if scheme(folder) else ctx.absolute_path(folder)
        self._folder = CheckpointFolder(uri, ctx.mgr.warn)
        self._ctx, self._trainer, self._loader = ctx, trainer, loader

    def save(self) -> None:
        """Saves a checkpoint. A collective call, at the end of the same epoch on all ranks."""
        from hearth.checkpoints.seal import Part

        trainer = self._trainer
        if trainer.ranks.rank == 0:
            state = {"run": trainer.run}
            draft = self._folder.begin(trainer.run["step"])
            with self._folder.writing(draft):
                files = {"model.npz": trainer.state(), "run.json": json.dumps(state).encode()}
                for name, data in files.items():
                    with draft.file(name) as file:
                        file.write(data)
                part = Part(trainer.run["step"], tuple(files))
                number = draft.seal({"model": part}, trainer.ranks.size).number
            self._folder.remove_older(KEPT, number)
        trainer.ranks.total([1.0])  # the others wait for rank 0
        self._ctx.mgr.note_commit()

    def restore(self) -> None:
        """Resumes from the newest checkpoint, if there is one. A collective call."""
        found = self._read() if self._trainer.ranks.rank == 0 else b""
        data = self._trainer.ranks.share(found)
        if data:
            size = int.from_bytes(data[:8], "little")
            self._trainer.run = json.loads(data[8 : 8 + size])["run"]
            self._trainer.restore(data[8 + size :])
            self._loader.set_epoch(self._trainer.run["epoch"])

    def _read(self) -> bytes:
        found = self._folder.newest()
        if found is None:
            return b""
        try:
            state, arrays = found.files["run.json"].read(), found.files["model.npz"].read()
        finally:
            found.close()
        return bytes(len(state).to_bytes(8, "little") + state + arrays)


def give(ctx: Any, about: dict[str, Any], archive: bytes) -> None:
    """Sends rank 0's result to the driver."""
    ctx.mgr.report_value(json.dumps(about).encode() + b"\n" + archive)


def result_of(cluster: Any) -> dict[str, Any] | None:
    """Rank 0's result, including its "archive"; None if rank 0 sent no result."""
    about, _, archive = results.joined(cluster.running.watch.values(0)).partition(b"\n")
    return {**json.loads(about), "archive": archive} if about else None


def load_archive(data: bytes, objects: Any = None, trusted: bool = False) -> Any:
    """The model in a .keras file. Code in the file (Lambda layers) runs only if the file is
    trusted."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import keras

    with TemporaryDirectory() as folder:
        path = Path(folder, "model.keras")
        path.write_bytes(data)
        return keras.models.load_model(
            path, custom_objects=dict(objects or {}), compile=False, safe_mode=not trusted
        )


def predictor_of(
    backend: str, archive: bytes, objects: bytes, inputs: Sequence[str]
) -> Callable[..., tuple[Any, ...]]:
    """A trained model as a function of arrays that returns all outputs in order.

    `objects`: the user's pickled classes, or b""; `inputs`: names of the arrays, for messages.
    """
    use_backend(backend)
    import keras

    from hearth.ml.keras_predictor import KerasPredictor

    known = pickle.loads(objects) if objects else None
    call = KerasPredictor(load_archive(archive, known, bool(objects)), inputs)
    return lambda *arrays: tuple(keras.tree.flatten(call(*arrays)))
