#!/usr/bin/env python3
"""Trains with an active MLflow run, and compares MLflow's records with the training.

`make test-mlflow` runs this in an environment with MLflow. Each program runs in a separate process,
with executors of Spark.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
PROGRAMS = ("caffe_program.py", "keras_program.py", "torch_program.py")
TIMEOUT_S = 600


def run(program: str) -> bool:
    """Whether the program succeeded; it prints to standard output."""
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "spark")}  # for conftest.py
        command = [sys.executable, str(HERE / program), folder]
        return subprocess.run(command, env=environment, timeout=TIMEOUT_S).returncode == 0


def main() -> int:
    """Returns the exit status: 0 if all programs succeeded."""
    failed = [program for program in PROGRAMS if not run(program)]
    print(f"failed: {', '.join(failed)}" if failed else f"{len(PROGRAMS)} programs succeeded")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
