"""Checkpoints of Keras' fit() in a shared folder, from which a restarted fit resumes."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

import keras
import numpy as np
import tensorflow as tf

from hearth.checkpoints.background import in_background
from hearth.checkpoints.checkpoint_folder import Checkpoint, CheckpointFolder, some_of
from hearth.checkpoints.seal import Part
from hearth.errors import code_of, invalid
from hearth.files.uri import scheme
from hearth.native.failure import Failure
from hearth.tensorflow import group
from hearth.tensorflow.operations import broadcast, broadcast_variables

logger = logging.getLogger(__name__)

_WEIGHTS = "model.weights.h5"
_DATA = "data.json"


class FitRows(Protocol):
    """The rows of fit(), with a position, as returned by loader.as_keras_dataset()."""

    def __len__(self) -> int:
        """Steps of a complete epoch."""

    def callback(self) -> keras.callbacks.Callback:
        """Counts the batches that were trained on."""

    def state_dict(self) -> dict[str, Any]:
        """The position, serializable as JSON."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Moves to a position."""

    def steps_left(self, end: int) -> int:
        """Steps until the epoch `end` of the rows starts."""


class BackupAndRestore(keras.callbacks.Callback):
    """A Keras callback: fit() resumes from the newest intact checkpoint, and writes new ones.

        rows = ctx.dataset("train", 32).as_keras_dataset("x", "y")
        model.fit(rows, epochs=5, shuffle=False, callbacks=[hvt.BackupAndRestore(ctx, rows)])

    A checkpoint contains the weights and the optimizer's state, as model.save_weights() writes
    them, the random states of the model's layers, and the position of the rows. With restart=True
    an interrupted fit that starts again with the same arguments trains on the remaining rows of
    `epochs` epochs, even with a different number of nodes. Rank 0 writes atomically, and reads for
    all ranks. All ranks need this callback; it replaces rows.callback().
    """

    def __init__(
        self,
        ctx: Any,
        rows: FitRows,
        every: int = 0,
        folder: str = "",
        keep: int = 2,
        *,
        background: bool = False,
    ):
        """
        Args:
            ctx: the node's context.
            rows: the dataset of fit().
            every: steps between checkpoints; 0: one at the end of each epoch.
            folder: path or URI; empty: the checkpoint_dir of the cluster.
            keep: how many of the newest checkpoints to keep; older ones are removed.
            background: a thread of rank 0 writes to the folder while fit() continues; the next
                checkpoint, and the end of fit(), wait for it. The state is first copied to a local
                file.

        Raises:
            HearthError: there is no folder, or `every` or `keep` is invalid.
        """
        super().__init__()
        uri = folder or ctx.checkpoint_dir
        if not uri:
            raise invalid(
                "no folder for checkpoints is set: pass run(..., checkpoint_dir=URI) or "
                "BackupAndRestore(..., folder=URI)"
            )
        if every < 0 or keep < 1:
            raise invalid(f"every={every} must be at least 0, and keep={keep} at least 1")
        self._ctx, self._rows, self._every, self._keep = ctx, rows, every, keep
        whole = uri if scheme(uri) else ctx.absolute_path(uri)
        self._folder = CheckpointFolder(whole, self._report)
        self._counter, self._background = rows.callback(), background
        self._is_writing = False  # the same on all ranks
        self._writing: Future[None] | None = None  # only on rank 0
        self._step = self._saved = 0  # numbers of steps, over all epochs
        self._batch = 0  # number of steps in the current epoch
        self._first = 0  # the rows' first epoch in the original fit
        self._last_step = 0

    def on_train_begin(self, logs: Any = None) -> None:
        """Restores the newest checkpoint; first waits for one that an interrupted fit is still
        writing."""
        self._settle()
        found = self._restored()
        epochs, rows = int(self.params["epochs"]), self._rows
        if found:
            self._step = int(found["step"])
            self._first = found.get("first", 0)
            left = rows.steps_left(self._first + epochs)
        else:
            self._step, left = 0, epochs * len(rows)
            epoch = rows.state_dict()["epoch"]
            self._first = epoch if rows.steps_left(epoch + 1) else epoch + 1
        self._saved, self._last_step = self._step, self._step + left
        self.model._initial_epoch = max(0, epochs - -(-left // len(rows)))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Resets the count of the epoch's steps."""
        self._counter.on_epoch_begin(epoch, logs)
        self._batch = 0
        if self._step >= self._last_step:  # the interrupted fit had finished
            self.model.stop_training = True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Counts the steps, and saves every `every` steps."""
        self._counter.on_train_batch_end(batch, logs)
        # With steps_per_execution, `batch` is the last of several steps.
        self._step += batch + 1 - self._batch
        self._batch = batch + 1
        if self._every and self._step >= self._saved + self._every:
            self._save()
        # If Keras' epoch started in the middle of the rows' epoch, the rows' epoch ends first.
        if self._step >= self._last_step:
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Saves a checkpoint, unless `every` is set."""
        if not self._every:
            self._save()

    def on_train_end(self, logs: Any = None) -> None:
        """Saves a checkpoint if there were steps since the last one, and waits until it is
        written."""
        if self._step > self._saved:
            self._save()
        self._settle()

    def _save(self) -> None:
        self._settle()
        state = self._rows.state_dict()
        _on_rank_0(lambda: self._begin(state))
        self._saved, self._is_writing = self._step, True
        if not self._background:
            self._settle()

    def _settle(self) -> None:
        """Waits until the last checkpoint is complete; if writing failed, all ranks raise."""
        if self._is_writing:
            self._is_writing = False
            _on_rank_0(self._written)
            if hasattr(self._ctx.mgr, "note_commit"):
                self._ctx.mgr.note_commit()

    def _written(self) -> str:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()
        return ""

    def _begin(self, state: dict[str, Any]) -> str:
        """Copies the state, and starts a thread that writes it."""
        local = _local_file()
        self.model.save_weights(local.name, overwrite=True)
        seeds = [variable.numpy().tolist() for variable in _seeds(self.model)]
        description = {"step": self._step, "first": self._first, "state": state, "seeds": seeds}
        data = json.dumps(description).encode()
        self._writing = in_background(partial(self._write, self._step, local, data))
        return ""

    def _write(self, step: int, local: Any, data: bytes) -> None:
        draft = self._folder.begin(step)
        with self._folder.writing(draft):
            # Reads the file that Keras wrote under this name.
            with local, open(local.name, "rb") as source, draft.file(_WEIGHTS) as file:
                shutil.copyfileobj(source, file)
            with draft.file(_DATA) as file:
                file.write(data)
            parts = {"model": Part(step, (_WEIGHTS,)), "data": Part(step, (_DATA,))}
            number = draft.seal(parts, group.size()).number
        self._folder.remove_older(self._keep, number)

    def _restored(self) -> dict[str, Any]:
        """Restores model and rows from the newest checkpoint. Returns the checkpoint's description;
        empty if there is no checkpoint."""
        if not self.model.built:
            raise invalid(
                f"the model {self.model.name!r} has no weights yet: start it with keras.Input, or "
                "call its build(), before fit()"
            )
        if not self.model.optimizer.built:
            self.model.optimizer.build(self.model.trainable_variables)
        found: dict[str, Any] = json.loads(_on_rank_0(self._read))
        if found:
            broadcast_variables([*self.model.variables, *self.model.optimizer.variables])
            self._rows.load_state_dict(found["state"])
        return found

    def _read(self) -> str:
        """Loads the model's weights; returns step and state of the rows as JSON."""
        checkpoint = self._folder.newest()
        if checkpoint is None:
            return "{}"
        try:
            return self._load(checkpoint)
        finally:
            checkpoint.close()

    def _load(self, checkpoint: Checkpoint) -> str:
        if missing := {_WEIGHTS, _DATA} - checkpoint.files.keys():
            raise invalid(
                f"{checkpoint.uri} was not written by BackupAndRestore: it has no "
                f"{some_of(missing)}; use one folder per program"
            )
        with _local_file() as local:
            shutil.copyfileobj(checkpoint.files[_WEIGHTS], local)
            local.flush()
            try:
                self.model.load_weights(local.name)
            except (ValueError, KeyError, OSError) as error:
                why = " ".join(str(error).split())[:300]
                raise invalid(f"{checkpoint.uri} is of another model: {why}") from error
        text = checkpoint.files[_DATA].read().decode()
        for variable, value in zip(_seeds(self.model), json.loads(text)["seeds"], strict=True):
            variable.assign(value)
        return str(text)

    def _report(self, line: str) -> None:
        logger.warning("%s", line)
        if hasattr(self._ctx.mgr, "warn"):
            self._ctx.mgr.warn(line)


def _seeds(model: Any) -> list[Any]:
    """The random states of a model, which save_weights() leaves out."""
    weights = {id(variable) for variable in model.weights}
    return [variable for variable in model.variables if id(variable) not in weights]


def _local_file() -> Any:
    return tempfile.NamedTemporaryFile(prefix="hearth-", suffix=".weights.h5")


def _on_rank_0(act: Callable[[], str]) -> str:
    """Runs `act` on rank 0; returns its result on all ranks. If `act` fails, all ranks raise the
    same HearthError."""
    outcome: dict[str, Any] = {}
    if group.rank() == 0:
        try:
            outcome = {"value": act()}
        except Exception as error:  # the other ranks wait for the result
            text = " ".join(str(error).split()) or type(error).__name__
            outcome = {"error": text, "code": code_of(error)}
    outcome = json.loads(_share(json.dumps(outcome).encode()))
    if "error" in outcome:
        raise Failure(outcome["error"], outcome["code"]).error()
    return str(outcome["value"])


def _share(text: bytes) -> bytes:
    """Returns rank 0's `text` on all ranks."""
    size = broadcast(tf.constant([len(text)], tf.int64), name="checkpoint's length")
    own = np.zeros(int(size[0]), np.uint8)
    if group.rank() == 0:
        own = np.frombuffer(text, np.uint8)
    return bytes(broadcast(tf.constant(own), name="checkpoint's text").numpy())
