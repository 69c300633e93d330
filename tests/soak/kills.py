"""Random kills of trainings: {torch, keras, caffe} x {frame, Parquet files} x {same ranks, other
ranks after each kill}; counts rows lost and doubled, and compares models.

Each training runs once without and once with kills. For torch and keras, a WebHDFS server of the
tests stores the Parquet files, and the ranks read them with the core's own client; Caffe's files
are local. `make soak` runs this; docs/reliability.md has the table. One cell: `kills.py --only
torch-frame-same --kills 5`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spark"))

import conftest
import counted_programs
import counted_steps
import faults
from counted_caffe import CaffeCell
from counted_programs import Training
from webhdfs_server import WebHdfs

HERE = Path(__file__).resolve().parent
FRAMEWORKS, SOURCES, WORLDS = ("torch", "keras", "caffe"), ("frame", "files"), ("same", "other")
CELLS = [f"{f}-{s}-{w}" for f in FRAMEWORKS for s in SOURCES for w in WORLDS]
KINDS = {
    "rank": "hearth.cluster.node.program",
    "supervisor": "hearth.cluster.node.supervisor",
    "executor": "CoarseGrainedExecutorBackend",
}
ROWS, WORLD = 400, 2
# Steps between a start's first batch and its kill: more than between two checkpoints, because a
# program that is killed twice without a checkpoint in between is not restarted.
_STEPS = (7, 24)
# A start that takes this many steps after a kill did not need the killed process.
_UNHURT_STEPS = 40
_POLL_S = 0.02


class Killer:
    """A thread that kills a process after some random steps of each start; close() ends it.

    Attributes:
        killed: number of killed processes by kind.
    """

    def __init__(self, folder: Path, chance: random.Random, kills: int):
        self._folder, self._chance, self._left = folder, chance, kills
        self._over = threading.Event()
        self.killed: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        killed = -1, 0  # the start of the last kill, and its steps by then
        while self._left and self._await(lambda at=killed: self._goes_on(*at)):
            steps = _steps_of(self._folder) + self._chance.randint(*_STEPS)
            if not self._await(lambda n=steps: _steps_of(self._folder) >= n):
                return
            time.sleep(self._chance.uniform(0, 0.02))
            self._kill(self._chance.choice(sorted(KINDS)))
            killed = counted_steps.progress(self._folder)[0], _steps_of(self._folder)

    def _goes_on(self, life: int, steps: int) -> bool:
        """Whether all ranks take steps of a start after `life`, or `life` survived its kill."""
        found, ranks, _ = counted_steps.progress(self._folder)
        if found == life:
            return _steps_of(self._folder) > steps + _UNHURT_STEPS
        return ranks >= max(1, len(list(self._folder.glob(f"{found:05d}-*"))))

    def _await(self, condition: Any) -> bool:
        while not self._over.wait(_POLL_S):
            if condition():
                return True
        return False

    def _kill(self, kind: str) -> None:
        nodes = conftest.marked_processes(KINDS["rank"])
        victims = nodes
        if kind == "supervisor":
            victims = [faults.parent_of(pid) for pid in nodes]
        elif kind == "executor":
            victims = conftest.marked_processes(KINDS["executor"])
        if victims and not self._over.is_set():
            pid = self._chance.choice(sorted(victims))
            os.kill(pid, signal.SIGKILL)
            print(f"killed {kind} {pid}", flush=True)
            self.killed[kind] += 1
            self._left -= 1


def _steps_of(folder: Path) -> int:
    """The number of steps that the last start has taken."""
    life, _, last = counted_steps.progress(folder)
    begin = [line[0] for line in counted_steps.lives(folder).get(life, []) if len(line) == 1]
    return last - max(begin, default=last)


class Cell:
    """One framework, one source and one way to resume, in a separate folder."""

    def __init__(self, spark: Any, name: str, folder: Path, hdfs: WebHdfs, seed: int):
        self.name = name
        self.framework, source, self.worlds = name.split("-")
        self._spark, self._folder = spark, folder
        self._chance = random.Random(f"{seed} {name}")
        columns = ("int(id) id", "float(id % 7 / 7) x", "float(id / 1000) y")
        self._rows = spark.range(0, ROWS, 1, 3).selectExpr(*columns)
        if source == "files":
            self._rows = self._stored(hdfs)

    def _stored(self, hdfs: WebHdfs) -> Any:
        """Writes the rows as Parquet files; returns their URI for Caffe, else a source."""
        import hearth.data

        parts = self._folder / "rows"
        self._rows.write.parquet(str(parts))
        if self.framework == "caffe":
            return f"file:{parts}"
        for file in parts.glob("*.parquet"):
            hdfs.files[f"/{self.name}/{file.name}"] = file.read_bytes()
        # The core's client lists the files, because Spark's JVM needs more than the test server
        # offers.
        return hearth.data.parquet(f"{hdfs.uri}/{self.name}").pin()

    def run(self, kills: int) -> dict[str, Any]:
        """Trains without kills, then with `kills` kills; returns the record for the JSON file."""
        started = time.monotonic()
        if self.framework == "caffe":
            cell = CaffeCell(self._spark, self._rows, self._folder, self._chance, WORLD)
            found = cell.run(kills, ROWS, self.worlds == "other")
        else:
            found = self._run_program(kills)
        seconds = time.monotonic() - started
        return {"cell": self.name, "asked": kills, **found, "seconds": round(seconds)}

    def _run_program(self, kills: int) -> dict[str, Any]:
        epochs = -(-(kills + 1) * (_STEPS[1] + 2) * 16 // ROWS)
        unbroken_run, models = self._folder / "unbroken", []
        unbroken_run.mkdir(parents=True)
        self._train(unbroken_run, epochs, WORLD, 0, restart=True)
        models.append((unbroken_run / "model").read_text())
        folder = self._folder / "kills"
        folder.mkdir()
        killer, error = Killer(folder, self._chance, kills), ""
        try:
            if self.worlds == "same":
                self._train(folder, epochs, WORLD, 0, restart=True)
            else:
                self._train_by_turns(folder, epochs, killer)
            models.append((folder / "model").read_text())
        except Exception as failure:
            error = repr(failure)
        finally:
            killer.close()
        counts = counted_steps.tally(folder, ROWS, epochs)
        even = counted_steps.tally(unbroken_run, ROWS, epochs)
        if not (counts.exact and even.exact):
            kept = tempfile.mkdtemp(prefix=f"kills-{self.name}-")
            print(f"not exact: {counts}, without kills {even}; see {kept}", flush=True)
            shutil.copytree(self._folder, kept, dirs_exist_ok=True)
        return {
            "epochs": epochs,
            "killed": dict(killer.killed),
            "error": error,
            "lost": counts.lost + even.lost,
            "doubled": counts.doubled + even.doubled,
            "again": 0,
            "same": len(set(models)) == 1 if self.worlds == "same" else None,
        }

    def _train_by_turns(self, folder: Path, epochs: int, killer: Killer) -> None:
        """Continues with another number of ranks after each kill: 2, 1, 2, ..."""
        from hearth.cluster import ClusterError

        for run in itertools.count():
            before = killer.killed.total()
            try:
                self._train(folder, epochs, WORLD - run % 2, 1000 * run, restart=False)
                return
            except ClusterError:
                if killer.killed.total() == before:
                    raise

    def _train(self, folder: Path, epochs: int, world: int, life: int, restart: bool) -> None:
        from hearth import cluster
        from hearth.torch import TorchCluster

        training = Training(str(folder), epochs, life)
        options = {"datasets": {"train": self._rows}, "restart": restart, "timeout_s": 600}
        if self.framework == "torch":
            options["checkpoint_dir"] = f"file://{folder}/checkpoints"
            main = counted_programs.train_torch
            started = TorchCluster.run(self._spark, main, training, world, **options)
        else:
            main = counted_programs.train_keras
            started = cluster.run(self._spark, main, training, world, **options)
        started.shutdown()


def run_cells(names: list[str], kills: int, seed: int, stop: float) -> Iterator[dict[str, Any]]:
    """Yields each cell's result, with `kills` kills each; starts no cell after the time `stop`."""
    os.environ.update([conftest.MARK.split("=")])
    # Executors must be able to import the main functions.
    paths = [str(HERE), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    with ExitStack() as stack:
        from hearth.spark import session

        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-kills-")))
        hdfs = stack.enter_context(WebHdfs())
        # On a busy machine, Workers' heartbeats are late.
        conf = {"spark.worker.timeout": "600"}
        spark = session.start("hearth-kills", executors=WORLD, conf=conf)
        stack.callback(spark.stop)
        for name in names:
            if time.time() > stop:
                break
            result = Cell(spark, name, folder / name, hdfs, seed).run(kills)
            yield {**result, "seed": seed, "date": time.strftime("%Y-%m-%d")}


def is_well(result: dict[str, Any]) -> bool:
    """Whether every kill was survived, no row was lost or doubled, and the model is unchanged."""
    exact = result["lost"] == result["doubled"] == 0 and result["same"] is not False
    return exact and not result["error"]


def table(results: list[dict[str, Any]]) -> str:
    """A table in Markdown with a line for each cell."""
    lines = [
        "| framework | rows | ranks on resume | kills | rank | supervisor | executor | rows lost "
        "| doubled | given again | model of an unbroken run |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    total: Counter[str] = Counter()
    for name in CELLS:
        mine = [result for result in results if result["cell"] == name]
        if not mine:
            continue
        killed = sum((Counter(result["killed"]) for result in mine), Counter())
        sums = {key: sum(result[key] for result in mine) for key in ("lost", "doubled", "again")}
        compared = [result["same"] for result in mine if result["same"] is not None]
        same = f"{sum(compared)} of {len(compared)}" if compared else "-"
        kinds = [killed[kind] for kind in KINDS]
        cells = [*name.split("-"), killed.total(), *kinds, *sums.values(), same]
        lines.append(f"| {' | '.join(map(str, cells))} |")
        total.update(kills=killed.total(), **sums)
    counts = " | ".join(str(total[key]) for key in ("lost", "doubled", "again"))
    lines.append(f"| all | | | {total['kills']} | | | | {counts} | |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=CELLS, action="append", help="these cells; else all")
    parser.add_argument("--kills", type=int, default=9, help="of each cell")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", default="", help="a file that the results are added to")
    parser.add_argument("--minutes", type=float, default=1e6, help="no cell begins after them")
    parser.add_argument("--table", metavar="JSON", help="show what a file has gathered")
    flags = parser.parse_args()
    if flags.table:
        print(table(json.loads(Path(flags.table).read_text())))
        return 0
    print(f"{flags.kills} kills per cell, seed {flags.seed}", flush=True)
    stop = time.time() + 60 * flags.minutes
    file, results = Path(flags.json) if flags.json else None, []
    for result in run_cells(flags.only or CELLS, flags.kills, flags.seed, stop):
        results.append(result)
        print(json.dumps(result), flush=True)
        if file:
            before = json.loads(file.read_text()) if file.exists() else []
            file.write_text(json.dumps([*before, result], indent=1))
    print(table(results))
    return 0 if all(map(is_well, results)) else 1


if __name__ == "__main__":
    sys.exit(main())
