"""A user's commands against the tests' cluster, which they find by the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_PROGRAM_S = 600


def run_program(*command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess:
    """A user's command, to its end; `environment` comes on top of this process's."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=_PROGRAM_S,
    )


def caffe_on_spark(*flags: str, folder: Path) -> subprocess.CompletedProcess:
    """`python -m hearth.caffeonspark` on YARN."""
    program = [sys.executable, "-m", "hearth.caffeonspark", "--master", "yarn"]
    return run_program(*program, *flags, folder=folder)


def spark_submit() -> str:
    import pyspark

    return str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
