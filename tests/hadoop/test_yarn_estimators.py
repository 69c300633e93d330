"""TorchEstimator and KerasEstimator on YARN, with all files in HDFS and a killed rank."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from yarn_programs import run_program

pytestmark = pytest.mark.long
PROGRAM = Path(__file__).with_name("estimators_on_yarn.py")


@pytest.mark.parametrize("framework", ["torch", "keras"])
def test_a_killed_fit_resumes_from_its_checkpoints_in_hdfs(hadoop, tmp_path, framework):
    pytest.importorskip("torch" if framework == "torch" else "tensorflow")
    tmp_path.chmod(0o777)
    home = f"{hadoop.uri}/user/{hadoop.user}/{framework}"
    command = [sys.executable, str(PROGRAM), home, str(tmp_path), framework]
    done = run_program(*command, folder=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    assert "went on in HDFS" in done.stdout
