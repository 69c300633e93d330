"""Elastic workers under dynamic allocation: executors are killed at random while workers=(least,
most) train; counts rows lost and doubled.

`make soak` runs this for ten minutes; docs/reliability.md has the results. A shorter run:
`elastic.py --minutes 2 --workers 1 2`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spark"))

import conftest
import counted_programs
import counted_steps
from counted_programs import Training

HERE = Path(__file__).resolve().parent
ROWS = 400
CONF = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.initialExecutors": "0",
    "spark.scheduler.minRegisteredResourcesRatio": "0.0",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.worker.timeout": "600",
}


class ExecutorKiller(threading.Thread):
    """Kills executors at random for `seconds`, then lets the training end.

    Attributes:
        killed: how many.
    """

    def __init__(
        self, folder: Path, seconds: float, pause_s: tuple[float, float], chance: random.Random
    ):
        """`pause_s`: the shortest and the longest time between two kills."""
        super().__init__(daemon=True)
        self._folder, self._seconds, self._chance = folder, seconds, chance
        self._pause_s = pause_s
        self._over = threading.Event()
        self.killed = 0

    def close(self) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while self._epoch() < 0 and not self._over.wait(0.2):
            pass
        until = time.monotonic() + self._seconds
        while time.monotonic() < until:
            if self._over.wait(self._chance.uniform(*self._pause_s)):
                return
            if victims := conftest.marked_processes("CoarseGrainedExecutorBackend"):
                os.kill(self._chance.choice(sorted(victims)), signal.SIGKILL)
                self.killed += 1
                print(f"killed an executor in epoch {self._epoch()}", flush=True)
        # An epoch that no rank can have passed by the time it reads the file.
        text = str(self._epoch() + 3)
        (self._folder / "epochs.new").write_text(text, encoding="ascii")
        os.replace(self._folder / "epochs.new", self._folder / "epochs")

    def _epoch(self) -> int:
        """The last epoch in which a step was taken."""
        lines = [line for life in counted_steps.lives(self._folder).values() for line in life]
        return max((line[1] for line in lines if len(line) > 1), default=-1)


def run(flags: argparse.Namespace) -> dict[str, Any]:
    """Runs one training with main()'s flags; returns its history."""
    from hearth.spark import session
    from hearth.torch import TorchCluster

    os.environ.update([conftest.MARK.split("=")])
    # Executors must be able to import the main function.
    paths = [str(HERE), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    conf = {**CONF, "spark.hearth.executorWait": flags.wait}
    workers = tuple(flags.workers)
    spark = session.start("hearth-elastic", executors=workers[1], conf=conf)
    with tempfile.TemporaryDirectory(prefix="hearth-elastic-") as name:
        folder = Path(name)
        chance = random.Random(flags.seed)
        killer = ExecutorKiller(folder, 60 * flags.minutes, tuple(flags.pause), chance)
        killer.start()
        training = Training(name, 10**6, pace_s=0.05)
        rows = spark.range(0, ROWS, 1, 3).selectExpr(
            "int(id) id", "float(id % 7 / 7) x", "float(id / 1000) y"
        )
        options = {"datasets": {"train": rows}, "restart": True, "timeout_s": 300}
        error = ""
        try:
            options["checkpoint_dir"] = f"file://{folder}/checkpoints"
            main = counted_programs.train_torch
            TorchCluster.run(spark, main, training, workers=workers, **options).shutdown()
        except Exception as failure:
            error = repr(failure)
        finally:
            killer.close()
        last = training.last_epoch()
        counts = counted_steps.tally(folder, ROWS, last if last < training.epochs else 0)
        worlds = Counter(file.name[:5] for file in folder.glob("?????-*"))
    spark.stop()
    return {
        **vars(flags),
        "killed": killer.killed,
        "worlds": [count for _, count in sorted(worlds.items())],
        "epochs": counts.epochs,
        "lost": counts.lost,
        "doubled": counts.doubled,
        "error": error,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs=2, default=(2, 8), metavar=("LEAST", "MOST"))
    parser.add_argument("--minutes", type=float, default=10, help="of kills")
    pause = "seconds between two kills; where a restart takes longer, no step is taken"
    parser.add_argument("--pause", type=float, nargs=2, default=(5, 30), help=pause)
    parser.add_argument("--wait", default="15s", help="for lost executors, before there are fewer")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    flags = parser.parse_args()
    found = run(flags)
    print(json.dumps(found))
    return 0 if found["lost"] == found["doubled"] == 0 and not found["error"] else 1


if __name__ == "__main__":
    sys.exit(main())
