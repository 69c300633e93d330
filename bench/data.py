#!/usr/bin/env python3
"""Datasets of two ranks against Ray Data, petastorm, mosaicml-streaming, torch and pyarrow.

`bench/data.py --json FILE --markdown FILE`. Each contender has a process and an environment
(data_environments.py) and takes the same rows: a DataFrame that its own Spark session has cached,
or Parquet files. All live through a case, SOURCE/SHAPE/SHUFFLE, and run in turn: two ranks, two
epochs, each batch looked at. What a peer writes first is its time. Figures of a run:

first batch   seconds: what was written, and from when the slowest rank has imported its packages
              until it has a batch
call          seconds from the call until the slowest rank has a batch, ranks' start included
epoch 1       rows per second: as `first batch`, until the slowest rank's epoch ends
epoch 2       rows per second
job cpu       processor seconds of all processes, from the call to its end
epoch 1 cpu   ... of what is written and from when the first rank begins until epoch 1 ends
epoch 2 cpu   ... of epoch 2

All rows of both epochs are checked by their ids and a sum over their values: a peer's missing or
repeated rows are in the table. `--fewer 50` tries everything out on few rows; `--limit MINUTES`
begins no further round after so long.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import data_environments
import data_ranks
import data_rows
import data_table
import marked_processes
import report
from hearth.spark import session as spark_session

SOURCES = ("frame", "parquet")
MODES = ("window", "full")
# In which cases each contender runs, and its environment where that is not ours.
CONTENDERS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "hearth": (SOURCES, None),
    "ray": (SOURCES, "ray"),
    "petastorm": (SOURCES, "petastorm"),
    "mds": (SOURCES, "mds"),
    "loader": (SOURCES, None),
    "loop": (("parquet",), None),
    "look": (("frame",), None),
    "unspooled": (("parquet",), None),
}
START_TIMEOUT_S = 300.0
RUN_TIMEOUT_S = 300.0
MEMORY_MB = 1536  # of an executor: it holds half of the rows


class Failed(Exception):
    """A side that ended, or was too slow; the text is the end of what it printed."""


class Side:
    """The running side of one contender. One thread uses it."""

    def __init__(self, name: str, job: Mapping[str, Any], log: Path):
        environment = CONTENDERS[name][1]
        python = str(data_environments.python(environment)) if environment else sys.executable
        self.mark = uuid.uuid4().hex
        self._log = log
        self._socket, far = socket.socketpair()
        settings = {**job["settings"], "spark.pyspark.python": python}
        arguments = {**job, "contender": name, "settings": settings, "socket": far.fileno()}
        bench = Path(__file__).parent
        variables = {
            **os.environ,
            "SPARK_HOME": str(spark_session.writable_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": python,
            "PYTHONPATH": str(bench),
            "RAY_TRAIN_V2_ENABLED": "1",
            "RAY_DISABLE_IMPORT_WARNING": "1",
            marked_processes.VARIABLE: self.mark,
        }
        with far, log.open("w") as output:
            self._process = subprocess.Popen(
                [python, bench / "data_side.py", json.dumps(arguments)],
                env=variables,
                pass_fds=[far.fileno()],
                stdout=output,
                stderr=output,
            )
        self._lines = self._socket.makefile("rw")

    def wait_ready(self) -> None:
        self._answer(START_TIMEOUT_S)

    def run(self, mode: str, folder: Path, port: int) -> dict[str, float]:
        """One run, whose ranks leave their files in the folder; the times of its driver."""
        job = {"mode": mode, "folder": str(folder), "port": port}
        print(json.dumps(job), file=self._lines, flush=True)
        return json.loads(self._answer(RUN_TIMEOUT_S))

    def _answer(self, timeout_s: float) -> str:
        self._socket.settimeout(timeout_s)
        try:
            line = self._lines.readline()
        except TimeoutError:
            line = ""
        if not line:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            status = f"after {timeout_s:.0f} s at most, exit status {self._process.returncode}"
            raise Failed(f"{self._log.read_text()[-2000:]}\n{status}")
        return line

    def close(self) -> None:
        """Raises nothing: what the side has started is killed where it does not end."""
        self._lines.close()
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(60)
        for process in marked_processes.find(self.mark):
            process.kill()
        self._process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Case:
    """One source and shape: the files, the sides that live, and what they did."""

    def __init__(self, source: str, shape: str, fewer: int, folder: Path):
        self.name = f"{source}/{shape}"
        self._source = source
        self._shape = data_rows.SHAPES[shape]
        self._rows = max(64, self._shape.rows // fewer)
        self._window = max(self._shape.batch_size, self._shape.window // fewer)
        self._folder = folder
        self._data = folder / "rows"
        self.failed: dict[str, str] = {}
        self._sides: dict[str, Side] = {}

    @contextmanager
    def running(self, contenders: list[str]) -> Iterator[None]:
        """Its rows written, and its sides ready. One that cannot start has failed."""
        data_rows.write(self._shape, self._rows, self._data)
        self._expected = json.loads((self._data / "_expected.json").read_text())
        with ExitStack() as stack:
            for name in contenders:
                if self._source in CONTENDERS[name][0]:
                    side = Side(name, self._job(), self._folder / f"{name}.log")
                    stack.callback(side.close)
                    with self._noting(name):
                        side.wait_ready()
                        self._sides[name] = side
            yield

    def turn(self, mode: str) -> Iterator[dict[str, Any]]:
        """A run of each side that has not failed."""
        for name, side in list(self._sides.items()):
            with self._noting(name), tempfile.TemporaryDirectory(dir=self._folder) as folder:
                yield {"contender": name, **self._run(side, mode, Path(folder))}

    def _run(self, side: Side, mode: str, folder: Path) -> dict[str, Any]:
        with marked_processes.Meter(side.mark) as meter:
            times = side.run(mode, folder, free_port())
        ranks = data_table.read_ranks(folder)
        return {
            **data_table.figures(times, ranks, meter, self._rows),
            "checks": list(data_table.check(ranks, self._expected)),
        }

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        try:
            yield
        except Failed as error:
            self._sides.pop(name, None)
            self.failed[name] = str(error)
            print(f"{self.name}: {name} failed:\n{error}", file=sys.stderr, flush=True)

    def _job(self) -> dict[str, Any]:
        shape = self._shape
        fields = ("batch_size", "width", "image", "step")
        return {
            **{field: getattr(shape, field) for field in fields},
            "window": self._window,
            "rows": self._rows,
            "source": self._source,
            "path": str(self._data),
            "settings": {
                **spark_session.ARROW_CONF,
                "spark.master": f"local-cluster[{data_ranks.WORLD},1,{MEMORY_MB}]",
                "spark.executor.memory": f"{MEMORY_MB}m",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
            },
        }


class Bench:
    """All cases; one thread."""

    def __init__(self, flags: argparse.Namespace):
        self._flags = flags
        self._until = time.monotonic() + flags.limit * 60
        self._table = report.Report()
        self._runs: list[dict[str, Any]] = []
        self._sections: list[str] = []

    def case(self, source: str, shape: str) -> None:
        """The rows SOURCE/SHAPE/SHUFFLE of all kinds of shuffle that are wanted."""
        flags = self._flags
        wanted = report.Report(flags.only).wants
        modes = [mode for mode in flags.modes.split(",") if wanted(f"{source}/{shape}/{mode}")]
        if not modes or self._is_over():
            return
        with tempfile.TemporaryDirectory(prefix="hearth-bench-") as folder:
            case = Case(source, shape, flags.fewer, Path(folder))
            with case.running(flags.contenders.split(",")):
                for mode in modes:
                    self._rounds(case, mode)

    def _rounds(self, case: Case, mode: str) -> None:
        name = f"{case.name}/{mode}"
        own = []
        # The first is not measured where all rows are taken.
        for turn in range(self._flags.fewer > 1, self._flags.rounds + 1):
            if turn > 1 and self._is_over():
                break
            for run in case.turn(mode):
                shown = {k: round(v, 3) for k, v in run.items() if isinstance(v, float)}
                print(f"{name} {turn} {run['contender']}: {shown} {run['checks']}", file=sys.stderr)
                if turn > 0:
                    own.append({"case": name, "round": turn, **run})
        self._runs += own
        data_table.add_rows(self._table, name, own)
        self._sections.append(data_table.summary(name, own, case.failed))
        self._save()

    def _is_over(self) -> bool:
        return time.monotonic() > self._until

    def _save(self) -> None:
        """After each case: what was measured stays where a later one is interrupted."""
        if self._flags.markdown:
            self._flags.markdown.write_text("\n".join(self._sections))
        if self._flags.json:
            found = {"rows": self._table.rows, "runs": self._runs}
            self._flags.json.write_text(json.dumps(found, indent=1) + "\n")


def main() -> None:
    parser = report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path, help="where to write the tables")
    parser.add_argument("--fewer", type=int, default=1, help="divide numbers of rows by this")
    parser.add_argument("--limit", type=float, default=90.0, help="minutes (default: 90)")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="by comma")
    parser.add_argument("--modes", default=",".join(MODES), help="kinds of shuffle (none, too)")
    flags = parser.parse_args()
    for name in flags.contenders.split(","):  # not while something is measured
        environment = CONTENDERS[name][1]
        if environment:
            data_environments.python(environment)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # its sides and files go, too
    bench = Bench(flags)
    for source in SOURCES:
        for shape in data_rows.SHAPES:
            bench.case(source, shape)


if __name__ == "__main__":
    main()
