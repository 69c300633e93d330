"""Spark's overhead in a training: the demo net on one executor against `hearth train`.

Both read the same Parquet file with the same solver and the same number of compute threads.
images/s counts the iterations between the first and the last report.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import report
from hearth import native
from hearth.caffeonspark import CaffeOnSpark, Config, DataSource
from hearth.spark import session as spark_session

DIGITS = Path(__file__).resolve().parents[1] / "python" / "hearth" / "demo"
sys.path.insert(0, str(DIGITS))
import prepare  # noqa: E402

BATCH = 32
ITERATIONS = 600
DISPLAY = 50
START_LIMIT_S = 2.0


def write_problem(folder: Path, layer: str, kind: str) -> Path:
    """Copies the demo's net with absolute sources and no validation; returns the solver's path."""
    net = (DIGITS / f"lenet_{layer}_train_test.prototxt").read_text()
    net = net.replace("file:work", f"file:{folder / 'work'}")
    net_path = folder / f"{kind}_net.prototxt"
    net_path.write_text(net)
    solver = (DIGITS / f"lenet_{layer}_solver.prototxt").read_text()
    settings = {
        "net": f'"{net_path}"',
        "max_iter": ITERATIONS,
        "display": DISPLAY,
        "snapshot_prefix": f'"{folder / kind}"',
    }
    for key, value in settings.items():
        solver = re.sub(rf"(?m)^{key}: .*$", f"{key}: {value}", solver)
    solver = re.sub(r"(?m)^test_(iter|interval): .*\n", "", solver)
    path = folder / f"{kind}_solver.prototxt"
    path.write_text(solver)
    return path


def images_per_second(marks: list[tuple[int, float]]) -> float:
    """Computed from (iteration, seconds) marks; the time before the first mark does not count."""
    (first, begin), (last, end) = marks[0], marks[-1]
    return (last - first) * BATCH / (end - begin)


def program_rate(solver: Path, threads: int) -> float:
    """images/s of `hearth train`, from the times in its log."""
    command = [str(native.program()), "train", f"--solver={solver}"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "HEARTH_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    pattern = r"(?m)^I\d{4} (\S+) .*Iteration (\d+) \(.*loss ="
    marks = [
        (int(iteration), datetime.strptime(clock, "%H:%M:%S.%f").timestamp())
        for clock, iteration in re.findall(pattern, done.stderr + done.stdout)
    ]
    return images_per_second(marks)


@dataclass
class SparkRun:
    """One training on one executor of a session."""

    images_per_s: float
    first_iteration_s: float  # from the call of train()

    @staticmethod
    def measure(spark, solver: Path) -> SparkRun:
        marks: list[tuple[int, float]] = []
        first: list[float] = []

        def on_event(event: dict) -> None:
            if event.get("event") == "progress":
                first.append(time.perf_counter())
            found = re.match(r"I\d{4} (\S+) .*Iteration (\d+) \(.*loss =", event.get("text", ""))
            if found:
                clock = datetime.strptime(found[1], "%H:%M:%S.%f").timestamp()
                marks.append((int(found[2]), clock))

        flags = {"conf": str(solver), "model": f"file:{solver}.caffemodel", "clusterSize": "1"}
        conf = Config(spark, flags)
        start = time.perf_counter()
        CaffeOnSpark(spark, on_event).train(DataSource(spark).getSource(conf, True))
        return SparkRun(images_per_second(marks), first[0] - start)


def main() -> None:
    flags = report.arguments(__doc__ or "").parse_args()
    rows = report.Report(flags.only)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare.write_tables(folder / "work")
        spark = spark_session.start("spark-overhead", executors=1)
        threads = int(spark.conf.get("spark.task.cpus"))
        # The executor is up: its first task has run.
        spark.range(1).mapInArrow(lambda batches: batches, "id long").collect()
        starts = []
        for layer, kind in (("memory", "png"), ("cos", "raw")):
            solver = write_problem(folder, layer, kind)
            runs: list[SparkRun] = []

            def ours(runs=runs, solver=solver) -> float:
                runs.append(SparkRun.measure(spark, solver))
                return runs[-1].images_per_s

            def peer(solver=solver) -> float:
                return program_rate(solver, threads)

            if rows.wants(f"train/{kind}"):
                a, b = report.alternate(flags.rounds, ours, peer)
                rows.add(f"train/{kind}", ours=a, peer=b, peer_name="hearth train", unit="images/s")
                starts += [run.first_iteration_s for run in runs[1:]]
        if starts:
            rows.add(
                "executors up to first iteration", ours=starts, peer=[START_LIMIT_S],
                peer_name="limit", unit="s", higher_is_better=False,
            )  # fmt: skip
        spark.stop()
    rows.save(flags.json)


if __name__ == "__main__":
    main()
