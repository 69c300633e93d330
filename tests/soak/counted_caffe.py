"""Caffe's trainings for kills.py, with the same or other ranks after each kill.

With other ranks a training starts the epoch again (docs/format_snapshot.md). The rows that it had
taken of that epoch are counted separately, as rows given again.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from pathlib import Path
from typing import Any

import counted_net
from counted_net import CountedNet
from fault_threads import TrainingFaults

KINDS = {"rank": "trainer", "supervisor": "worker", "executor": "executor"}
_STEPS_PER_KILL = 60


class CaffeCell:
    """One source and one way to resume, in a separate folder."""

    def __init__(self, spark: Any, rows: Any, folder: Path, chance: random.Random, world: int):
        """`rows`: a DataFrame with ids and x, or the URI of Parquet files."""
        self._spark, self._rows, self._chance, self._world = spark, rows, chance, world
        self._folder = folder

    def run(self, kills: int, row_count: int, others: bool) -> dict[str, Any]:
        """Trains without kills, then with `kills` kills; returns the record for the JSON file."""
        names = [self._chance.choice(sorted(KINDS)) for _ in range(kills)]
        uri = self._rows if isinstance(self._rows, str) else "file:/none"
        settings = {"max_iter": 100 + _STEPS_PER_KILL * kills, "source": uri, "pace_s": 0.005}
        net = CountedNet(self._folder / "net", row_count, 16, **settings)
        models = [self._train(net, TrainingFaults(net, self._world, [], 0), self._world)]
        unbroken_run, error, threads = net.tally(), "", []
        net.clear()
        try:
            models.append(self._killed(net, names, others, threads))
        except Exception as failure:
            error = repr(failure)
        killed: Counter[str] = Counter()
        for thread in threads:
            error = error or (repr(thread.error) if thread.error else "")
            killed += Counter({kind: len(times) for kind, times in thread.recoveries.items()})
        parts = net.learned_by_run() if others else [net.learned()]
        counts = [counted_net.tally(part, row_count) for part in parts]
        again = [_unfinished(part, row_count) for part in parts[:-1]]
        return {
            "epochs": sum(count.epochs for count in counts),
            "killed": {name: killed[kind] for name, kind in KINDS.items()},
            "error": error,
            "lost": unbroken_run.lost + sum(count.lost for count in counts),
            "doubled": unbroken_run.doubled + sum(count.doubled for count in counts),
            "again": sum(again),
            "same": None if others else len(set(models)) == 1,
        }

    def _killed(
        self, net: CountedNet, names: list[str], others: bool, threads: list[TrainingFaults]
    ) -> str:
        """Trains with kills; returns the model's hash. Adds its fault threads to `threads`."""
        kinds, seed = [KINDS[name] for name in names], self._chance.randrange(1 << 30)
        if not others:
            threads.append(TrainingFaults(net, self._world, kinds, seed))
            return self._train(net, threads[0], self._world)
        for run, kind in enumerate(kinds):
            net.begin(run)
            world = self._world - run % 2
            threads.append(_Once(net, world, kind, seed + run, run))
            try:
                return self._train(net, threads[-1], world, maxRestarts="0", **_resume(net))
            except RuntimeError:
                if not threads[-1].recoveries:  # otherwise it failed without a kill
                    raise
        net.begin(len(kinds))
        quiet = TrainingFaults(net, self._world, [], seed)
        return self._train(net, quiet, self._world - len(kinds) % 2, **_resume(net))

    def _train(self, net: CountedNet, thread: TrainingFaults, world: int, **flags: Any) -> str:
        from hearth.caffeonspark import CaffeOnSpark, DataSource

        conf = net.config(self._spark, **{"maxRestarts": "100", **flags}, clusterSize=str(world))
        if isinstance(self._rows, str):
            source = DataSource(self._spark).getSource(conf, True)
        else:
            source = DataSource(self._spark).fromDataFrame(conf, self._rows, True)
        with thread:
            CaffeOnSpark(self._spark, on_event=thread.on_event).train(source)
        return hashlib.sha256((net.folder / "model.caffemodel").read_bytes()).hexdigest()


class _Once(TrainingFaults):
    """Kills a training once; the training must not restart."""

    def __init__(self, net: CountedNet, world: int, kind: str, seed: int, generation: int):
        super().__init__(net, world, [kind], seed)
        self._generation = generation

    def _inject(self, kind: str) -> bool:
        if landed := super()._inject(kind):
            self.recoveries[kind].append(0.0)
        return landed


def _resume(net: CountedNet) -> dict[str, str]:
    """Flags that select the newest snapshot; empty if there is none."""
    found = [int(f.stem.rpartition("_")[2]) for f in net.folder.glob("counted_iter_*.solverstate")]
    if not found:
        return {}
    name = f"file:{net.folder}/counted_iter_{max(found)}"
    return {"snapshot": f"{name}.solverstate", "weights": f"{name}.caffemodel"}


def _unfinished(segment: list[list[int]], rows: int) -> int:
    """The number of rows that a segment has taken of its last, incomplete epoch."""
    return sum(map(len, segment)) % rows
