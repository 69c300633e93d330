"""The feed against the real TensorFlowOnSpark: the same rows in the same partitions, in turn.

Each side is a process with a separate Spark session and cluster of one executor
(tf_upstream_side.py); all live through the run and are fed one at a time.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import marked_processes
import report
import upstream_environment
from hearth.spark import session as spark_session

# Upstream reads only the first, and is the peer of both.
KINDS = ("rdd", "dataframe")
# Minimum time for which a side is repeatedly fed its rows.
LEAST_S = 10.0
# Upstream needs 10 to 40 s for these and Hearth 2 s or more, so a job's fixed cost weighs little on
# both sides.
ROWS = {"784 floats": 100_000, "10 floats": 800_000, "150 KB images": 8_000}
MEMORY_MB = 4096  # memory of an executor, which stores the rows
START_TIMEOUT_S = 300.0

Measured = tuple[float, float]  # rows per second, microseconds of processor time per row


class Side:
    """A running side. One thread uses it."""

    def __init__(self, python: str, job: dict[str, Any], log: Path):
        self._rows = job["rows"]
        self._mark = uuid.uuid4().hex
        self._log = log
        self._socket, theirs = socket.socketpair()
        settings = {**job["settings"], "spark.pyspark.python": python}
        arguments = json.dumps({**job, "settings": settings, "socket": theirs.fileno()})
        program = Path(__file__).with_name("tf_upstream_side.py")
        environment = {
            **os.environ,
            "SPARK_HOME": str(spark_session.writable_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": python,
            marked_processes.VARIABLE: self._mark,
        }
        with theirs, log.open("w") as output:
            self._process = subprocess.Popen(
                [python, program, arguments],
                env=environment,
                pass_fds=[theirs.fileno()],
                stdout=output,
                stderr=output,
            )
        self._lines = self._socket.makefile("rw")

    def wait_ready(self) -> None:
        """Waits until the side has read all rows once. Raises SystemExit if it ended instead."""
        self._socket.settimeout(START_TIMEOUT_S)
        self._expect("ready")
        self._socket.settimeout(None)

    def feed(self, least_s: float) -> Measured:
        """Feeds all rows, repeatedly for at least `least_s` seconds."""
        rows = 0
        before = marked_processes.cpu_seconds(self._mark)
        start = time.perf_counter()
        while (wall := time.perf_counter() - start) < least_s:
            print("feed", file=self._lines, flush=True)
            self._expect("fed")
            rows += self._rows
        spent = marked_processes.cpu_seconds(self._mark) - before
        return rows / wall, spent / rows * 1e6

    def _expect(self, word: str) -> None:
        if self._lines.readline().strip() != word:
            raise SystemExit(f"a side of the upstream rows has ended; its output is in {self._log}")

    def close(self) -> None:
        self._lines.close()
        self._socket.close()
        try:
            self._process.wait(60)
        finally:
            for process in marked_processes.find(self._mark):
                process.kill()


@contextmanager
def running_sides(shape: str, rows: int) -> Iterator[dict[str, Side]]:
    """Hearth's sides by kind of rows, and the side "upstream"."""
    settings = {
        **spark_session.ARROW_CONF,
        "spark.master": f"local-cluster[1,1,{MEMORY_MB}]",
        "spark.executor.memory": f"{MEMORY_MB}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    pythons = dict.fromkeys(KINDS, sys.executable)
    pythons["upstream"] = str(upstream_environment.python())
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        sides = {}
        for name, python in pythons.items():
            kind = name if name in KINDS else KINDS[0]
            job = {"shape": shape, "kind": kind, "rows": rows, "settings": settings}
            side = Side(python, job, Path(folder, f"{name}.log"))
            stack.callback(side.close)
            sides[name] = side
        for side in sides.values():
            side.wait_ready()
        yield sides


def bench(table: report.Report, shape: str, rounds: int, fewer: int) -> None:
    """The rows KIND/SHAPE/upstream and KIND/SHAPE/upstream/cpu; `fewer`: see tf_feed.py."""
    names = {kind: f"{kind}/{shape}/upstream" for kind in KINDS}
    if not any(map(table.wants, names.values())):
        return
    found: dict[str, list[Measured]] = {}
    with running_sides(shape, ROWS[shape] // fewer) as sides:
        for _ in range(rounds):
            for name, side in sides.items():
                found.setdefault(name, []).append(side.feed(LEAST_S / fewer))
    for kind, name in names.items():
        add_pair(table, name, found[kind], found["upstream"], "TensorFlowOnSpark 2.2.5")


def add_pair(
    table: report.Report, name: str, ours: list[Measured], peer: list[Measured], peer_name: str
) -> None:
    """The two rows of a case, by wall time and by processor time."""
    rates, cpus = zip(*ours, strict=True)
    peer_rates, peer_cpus = zip(*peer, strict=True)
    table.add(name, ours=rates, peer=peer_rates, peer_name=peer_name, unit="rows/s")
    table.add(
        f"{name}/cpu",
        ours=cpus,
        peer=peer_cpus,
        peer_name=peer_name,
        unit="us/row",
        higher_is_better=False,
    )
