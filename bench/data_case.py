"""Runs each contender of data.py or rivals.py in a process, on a case that all share."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
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
from hearth.spark import session as spark_session

SOURCES = ("frame", "parquet")
# The contender's cases, and its environment unless that is .venv.
CONTENDERS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "hearth": (SOURCES, None),
    "ray": (SOURCES, "ray"),
    "petastorm": (SOURCES, "petastorm"),
    "mds": (SOURCES, "mds"),
    "loader": (SOURCES, None),
    "loop": (("parquet",), None),
    "look": (("frame",), None),
    "unspooled": (("parquet",), None),
    "distributor": (("frame",), None),
    "memory": (("frame",), None),
    "bare": (("frame",), None),
}
START_TIMEOUT_S = 300.0
RUN_TIMEOUT_S = 600.0
MEMORY_MB = 1536  # memory of an executor, which stores half of the rows


class Failed(Exception):
    """Raised if a process ended or was too slow. The text is the end of its output."""


class FailedRun(Failed):
    """Lets the contender's process continue."""


class Side:
    """A contender's running process. Used by one thread."""

    def __init__(self, name: str, job: Mapping[str, Any], log: Path):
        environment = CONTENDERS[name][1]
        python = str(data_environments.python(environment)) if environment else sys.executable
        self.mark = uuid.uuid4().hex
        self._log = log
        self._socket, theirs = socket.socketpair()
        settings = {**job["settings"], "spark.pyspark.python": python}
        arguments = {**job, "contender": name, "settings": settings, "socket": theirs.fileno()}
        bench = Path(__file__).parent
        variables = {
            **os.environ,
            "SPARK_HOME": str(spark_session.writable_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": python,
            "PYTHONPATH": str(bench),
            "RAY_TRAIN_V2_ENABLED": "1",
            "RAY_raylet_start_wait_time_s": "120",
            marked_processes.VARIABLE: self.mark,
        }
        with theirs, log.open("w") as output:
            self._process = subprocess.Popen(
                [python, bench / "data_side.py", json.dumps(arguments)],
                env=variables,
                pass_fds=[theirs.fileno()],
                stdout=output,
                stderr=output,
            )
        self._lines = self._socket.makefile("rw")

    def wait_ready(self) -> None:
        self._answer(START_TIMEOUT_S)

    def run(self, mode: str, folder: Path, port: int) -> dict[str, float]:
        """Runs the contender once; returns the driver's times.

        Ranks write their results to the folder.
        """
        job = {"mode": mode, "folder": str(folder), "port": port}
        print(json.dumps(job), file=self._lines, flush=True)
        times = json.loads(self._answer(RUN_TIMEOUT_S))
        if "error" in times:
            raise FailedRun(f"{self._log.read_text()[-2000:]}\n{times['error']}")
        return times

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
        """Ends the process, and kills what it has started and does not end. Never raises."""
        self._lines.close()
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(60)
        for process in marked_processes.find(self.mark):
            process.kill()
        self._process.wait()


def prepare(contenders: list[str]) -> None:
    """Makes the contenders' environments.

    From then on SIGTERM ends the contenders' processes and removes their files.
    """
    for name in contenders:  # so that nothing is installed during a measurement
        environment = CONTENDERS[name][1]
        if environment:
            data_environments.python(environment)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Case:
    """One source and shape: the files, the contenders' processes, and their results."""

    def __init__(
        self,
        name: str,
        source: str,
        shape: data_rows.Shape,
        folder: Path,
        more: Mapping[str, Any] | None = None,
    ):
        """`more`: fields of the job besides those of the shape."""
        self.name, self._source, self._shape, self._folder = name, source, shape, folder
        self._more = dict(more or {})
        self._data = folder / "rows"
        self.failed: dict[str, list[str]] = {}
        self._sides: dict[str, Side] = {}

    @contextmanager
    def running(self, contenders: list[str]) -> Iterator[None]:
        """Writes the rows and starts the processes; one that cannot start counts as failed."""
        data_rows.write(self._shape, self._data)
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
        """Runs each contender that has not failed."""
        for name, side in list(self._sides.items()):
            with self._noting(name), tempfile.TemporaryDirectory(dir=self._folder) as folder:
                yield {"contender": name, **self._run(side, mode, Path(folder))}

    def _run(self, side: Side, mode: str, folder: Path) -> dict[str, Any]:
        with marked_processes.Meter(side.mark) as meter:
            times = side.run(mode, folder, free_port())
        ranks = data_table.read_ranks(folder)
        return {
            **data_table.figures(times, ranks, meter, self._shape.rows),
            "checks": list(data_table.check(ranks, self._expected)),
        }

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        try:
            yield
        except Failed as error:
            if not isinstance(error, FailedRun):
                self._sides.pop(name, None)
            self.failed.setdefault(name, []).append(str(error))
            print(f"{self.name}: {name} failed:\n{error}", file=sys.stderr, flush=True)

    def _job(self) -> dict[str, Any]:
        shape = self._shape
        fields = ("rows", "batch_size", "window", "width", "kind", "step")
        return {
            **{field: getattr(shape, field) for field in fields},
            **self._more,
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
