"""A rank of counted_programs.train_keras, without Spark, that kills itself at a point in a step."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import counted_programs
from counted_steps import Recorder
from dataset_ranks import partitions_of, rank_dataset

from hearth.data.loader import Loader
from hearth.data.options import LoaderOptions

ROWS, EPOCHS = 400, 2
# Points at which a rank is killed: after it has taken the step's batch, reduced the gradients, or
# recorded its rows; rank 0 also after it has written or renamed the checkpoint.
POINTS = ("given", "reduced", "recorded", "written", "saved")
# Time for the other rank to continue as far as it can without this one.
_ALONE_S = 1.0


def run(rank: int, world: int, folder: str, life: int, kill: tuple[str, int, int]) -> None:
    """Trains; `kill`: (point, step, rank)."""
    import hearth.tensorflow as hvt

    step = 0

    def at(point: str, of: int) -> None:
        if (point, of, rank) == kill:
            time.sleep(_ALONE_S)
            os.kill(os.getpid(), signal.SIGKILL)

    class Killed(Recorder):
        def note(self, number: int, epoch: int, ids: Any) -> None:
            nonlocal step
            step = number
            at("reduced", step)
            super().note(step, epoch, ids)
            at("recorded", step)

    def named(source: Any, target: Any, replace: Any = os.replace) -> None:
        kept = Path(target).name == "kept.pickle"
        at("written", step if kept else -1)
        replace(source, target)
        at("saved", step if kept else -1)

    class Context:
        restart_count = 0
        mgr = SimpleNamespace(note_commit=lambda: None)

        def dataset(self, name: str, batch: int, **options: Any) -> Loader:
            parts = partitions_of(*[ROWS // 8] * 8, x=lambda i: i % 7 / 7, y=lambda i: i / 1000)

            def note(batch: Any) -> Any:
                at("given", step + 1)
                return batch

            return Loader(
                rank_dataset(parts, rank, world), LoaderOptions(batch, **options, map=note)
            )

    counted_programs.Recorder = Killed  # type: ignore[misc]
    os.replace = named
    hvt.init = lambda: None  # already initialized
    training = counted_programs.Training(folder, EPOCHS, life, pace_s=0.0)
    counted_programs.train_keras(training, Context())
