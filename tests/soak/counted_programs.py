"""Main functions for PyTorch and Keras that train on ctx.dataset() and record each step's rows."""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counted_steps import Recorder


@dataclass(frozen=True)
class Training:
    """Parameters of the ranks; `first_life`: the number of the run's first start."""

    folder: str
    epochs: int
    first_life: int = 0
    batch: int = 8
    keep_every: int = 5  # steps
    pace_s: float = 0.01

    def last_epoch(self) -> int:
        """The number of epochs, which the file "epochs" in the folder may lower during the run."""
        file = Path(self.folder, "epochs")
        return int(file.read_text(encoding="ascii")) if file.exists() else self.epochs


def train_torch(training: Training, ctx: Any) -> None:
    """A DDP program with momentum and dropout that resumes from its own checkpoints."""
    import torch
    import torch.distributed as dist
    from torch.nn.functional import dropout
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group(ctx.backend)
    torch.set_num_threads(1)
    torch.manual_seed(3)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def noisy(batch: Any, seeds: Any) -> Any:  # computes noise from the rows' seeds
        return {**batch, "x": batch["x"] + torch.from_numpy(seeds % 97 / 970).float()}

    loader = ctx.dataset("train", training.batch, uneven="weight", seed=5, map=noisy)
    parts = {"model": model, "optimizer": optimizer, "data": loader}
    step = ctx.restore(**parts) or 0
    life = training.first_life + ctx.restart_count
    recorder = Recorder(training.folder, life, ctx.rank, step)
    while loader.epoch < training.last_epoch():
        epoch = loader.epoch
        for batch in loader:
            step += 1
            weight = batch["row_weight"]
            recorder.note(step, epoch, batch["id"][weight > 0])
            optimizer.zero_grad()
            error = (model(dropout(batch["x"][:, None].repeat(1, 8), 0.3))[:, 0] - batch["y"]) ** 2
            ((error * weight).sum() / len(weight)).backward()
            optimizer.step()
            time.sleep(training.pace_s)
            if step % training.keep_every == 0:
                ctx.checkpoint(step, **parts)
    if ctx.rank == 0:
        values = [value.numpy().tobytes() for value in model.state_dict().values()]
        _write_hash(training.folder, values)


def train_keras(training: Training, ctx: Any) -> None:
    """Runs model.fit() with the collective's gradients; rank 0 saves variables with the position.

    It ends after the first step past the last epoch, because fit() counts only its own steps.
    """
    import keras
    import numpy as np

    import hearth.tensorflow as hvt

    hvt.init()
    keras.utils.set_random_seed(3)
    step, kept = 0, Path(training.folder, "kept.pickle")
    layers = [keras.layers.Input((1,)), keras.layers.Dense(8), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    optimizer = hvt.DistributedOptimizer(keras.optimizers.SGD(0.01, momentum=0.9))
    model.compile(optimizer, "mse")
    optimizer.build(model.trainable_variables)
    loader = ctx.dataset("train", training.batch, uneven="weight", seed=5)
    given: list[Any] = []  # (ids, weights) of batches that fit() has taken
    dataset = _noting(loader.as_keras_dataset("x", "y"), given)
    variables = [*model.variables, *optimizer.variables]
    if kept.exists():
        step, values, state = pickle.loads(kept.read_bytes())
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        dataset.load_state_dict(state)
    life = training.first_life + ctx.restart_count
    recorder = Recorder(training.folder, life, hvt.rank(), step)

    def met(name: str) -> None:
        hvt.allreduce(np.zeros(1, np.float32), name=name)

    class Steps(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            nonlocal step
            step += 1
            state = dataset.state_dict()
            ids, weights = given.pop(0)
            recorder.note(step, state["epoch"], ids[weights > 0])
            self.model.stop_training = state["epoch"] >= training.epochs
            time.sleep(training.pace_s)
            if step % training.keep_every == 0:
                met("recorded")  # all ranks recorded: a saved but unrecorded step looks lost
                if hvt.rank() == 0:
                    values = [np.asarray(variable) for variable in variables]
                    kept.with_suffix(".new").write_bytes(pickle.dumps((step, values, state)))
                    os.replace(kept.with_suffix(".new"), kept)
                met("kept")
                ctx.mgr.note_commit()

    callbacks = [dataset.callback(), Steps()]
    model.fit(dataset, epochs=10**6, shuffle=False, verbose=0, callbacks=callbacks)
    if hvt.rank() == 0:
        _write_hash(training.folder, [np.asarray(value).tobytes() for value in model.variables])


def _noting(dataset: Any, given: list[Any]) -> Any:
    """Makes the dataset note the ids and weights of each batch that it returns."""
    take, begin = dataset._chosen, dataset._seek

    def chosen(batch: dict[str, Any]) -> Any:
        given.append((batch["id"], batch["row_weight"]))
        return take(batch)

    def seek(state: Any) -> None:
        given.clear()
        begin(state)

    dataset._chosen, dataset._seek = chosen, seek
    return dataset


def _write_hash(folder: str, values: list[bytes]) -> None:
    digest = hashlib.sha256(b"".join(values)).hexdigest()
    Path(folder, "model.new").write_text(digest, encoding="ascii")
    os.replace(Path(folder, "model.new"), Path(folder, "model"))
