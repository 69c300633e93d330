"""Runs a user's commands on the tests' cluster, which they find by environment variables, and reads
their results.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from hadoop_faults import reached

from hearth.native import _core

GOAL = 0.95  # the accuracy on rows not used for training
PROGRAM_S = 600


def run_program(*command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess:
    """Runs a user's command; `environment` is added to this process's."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
    )


def caffe_on_spark(*flags: str, folder: Path) -> subprocess.CompletedProcess:
    """Runs `python -m hearth.caffeonspark` on YARN."""
    program = [sys.executable, "-m", "hearth.caffeonspark", "--master", "yarn"]
    return run_program(*program, *flags, folder=folder)


def spark_submit() -> str:
    import pyspark

    return str(Path(pyspark.__file__).parent / "bin" / "spark-submit")


def names(hadoop, folder: str) -> list[str]:
    """The names in a folder below the user's home folder."""
    try:
        found = hadoop.web("GET", f"/user/{hadoop.user}/{folder}", "LISTSTATUS")
    except OSError:
        return []
    return sorted(status["pathSuffix"] for status in found["FileStatuses"]["FileStatus"])


def accuracy(means: str) -> float:
    values = dict(line.split(": ") for line in means.splitlines())
    return float(values["accuracy"])


def content(hadoop, file: str) -> bytes:
    """The content of a file below the user's home folder."""
    return _core.read_file(f"{hadoop.uri}/user/{hadoop.user}/{file}")


def last_application(hadoop) -> dict:
    """YARN's report of the newest application, once it has ended."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        apps = hadoop.cluster("apps")["apps"]["app"]
        newest = max(apps, key=lambda app: app["startedTime"])
        if newest["finalStatus"] != "UNDEFINED":
            return newest
        time.sleep(0.2)
    raise AssertionError(newest)


def output_of(hadoop, application: str) -> str:
    """The logs of the application's containers, which YARN moves to HDFS after its end."""
    said: list[str] = []

    def gathered() -> bool:
        with suppress(RuntimeError):  # no logs yet
            said[:] = [hadoop.run("yarn", "logs", "-applicationId", application)]
        return "LogType:stderr" in "".join(said)

    reached(gathered)
    return said[0]
