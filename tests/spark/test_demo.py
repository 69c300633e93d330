"""The main job as `make demo` runs it, and the command line under it."""

import subprocess
import sys

from conftest import DIGITS


def test_the_demo_reaches_its_accuracies():
    command = [sys.executable, str(DIGITS / "run.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=290)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "LogisticRegression" in done.stdout


def test_an_existing_output_is_one_line(digits, trained, tmp_path):
    command = [
        sys.executable, "-m", "hearth.caffeonspark", "-features", "ip1", "-conf", trained.protoFile,
        "-model", trained.modelPath, "-output", f"file:{tmp_path}", "--master", "local[1]",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("caffeonspark:")]
    assert str(tmp_path) in line
    assert "Traceback" not in done.stderr
