"""Runs the `hearth` program like a user, and provides small nets to run it on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

from hearth import native

TIMEOUT_S = 120
_MOST_LINES = 200_000

# A regression without data files: x and the target of the inner product are constant.
NET = """name: "dummy"
layer { name: "x" type: "DummyData" top: "x" top: "t"
  dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 }
    data_filler { type: "constant" value: 1 } data_filler { type: "constant" value: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
"""


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Starts the program; its stderr (the log) is text."""
    command = [str(native.program()), *arguments]
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=native.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str, cwd: Path, status: int = 0) -> str:
    """Runs the program; returns its stdout and stderr. Fails unless it exits with `status`."""
    process = start(*arguments, cwd=cwd)
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == status, stdout + stderr
    return stdout + stderr


def messages(log: str) -> list[str]:
    """The log's lines without time, thread and source location."""
    return [re.sub(r"^[IWE]\d{4} \S+ +\d+ [^]]+\] ", "", line) for line in log.splitlines()]


def write_solver(folder: Path, more: str = "", net: str = NET) -> str:
    """Writes net.prototxt and solver.prototxt; returns the solver's name.

    The solver runs 20 iterations at a rate of 0.02 unless `more` says otherwise.
    """
    (folder / "net.prototxt").write_text(net)
    defaults = {
        "net": '"net.prototxt"',
        "lr_policy": '"fixed"',
        "base_lr": "0.02",
        "max_iter": "20",
        "random_seed": "3",
        "snapshot_prefix": '"snap"',
    }
    if "train_net:" in more:
        del defaults["net"]
    lines = [f"{key}: {value}" for key, value in defaults.items() if f"{key}:" not in more]
    (folder / "solver.prototxt").write_text("\n".join([*lines, more]))
    return "solver.prototxt"


def signalled(
    folder: Path, signals: dict[str, signal.Signals], *flags: str
) -> tuple[int, list[str]]:
    """Trains endlessly, and sends each signal when a line has its text; returns status and log."""
    solver = write_solver(folder, "max_iter: 100000000 display: 10")
    process = start("train", "-solver", solver, *flags, cwd=folder)
    lines, waiting = [], dict(signals)
    try:
        for line in process.stderr:
            lines.append(line)
            assert len(lines) < _MOST_LINES, f"{waiting} came for nothing, or never"
            for text in [text for text in waiting if text in line]:
                os.kill(process.pid, waiting.pop(text))
        process.wait(TIMEOUT_S)
    finally:
        process.kill()
    return process.returncode, messages("".join(lines))
