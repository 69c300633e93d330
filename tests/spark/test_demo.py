"""The demo of `make demo`, and its command line."""

import os
import subprocess
import sys

import pytest


@pytest.mark.long
@pytest.mark.timeout(900)  # half a minute on an idle machine
def test_the_demo_reaches_its_accuracies(tmp_path):
    """Runs the demo as a package; `make demo` runs the same file from the checkout."""
    command = [sys.executable, "-m", "hearth.demo"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=850, env=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "LogisticRegression" in done.stdout
    (folder,) = tmp_path.glob("hearth-demo-*")
    assert (folder / "work" / "lenet_memory.caffemodel").exists()


def test_the_demo_reports_missing_packages():
    code = (
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name: None if name == 'pyspark' else find(name)\n"
        "from hearth.demo import run; run.require_extras()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "digits: this needs pyspark: pip install 'hearth-spark[spark]'\n"


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
