"""The package tensorflowonspark when the distribution of that name is installed, too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def imported(path: Path) -> str:
    """Standard error of `import tensorflowonspark` if `path` is on the module path."""
    folders = (str(path), os.environ.get("PYTHONPATH"))
    done = subprocess.run(
        [sys.executable, "-c", "import tensorflowonspark as t; assert t.__version__"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
    )
    return done.stderr


def test_tensorflowonspark_itself_is_warned_of(tmp_path: Path) -> None:
    if "is installed" in imported(tmp_path):
        pytest.skip("TensorFlowOnSpark is installed here")
    info = tmp_path / "tensorflowonspark-2.2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflowonspark\nVersion: 2.2.5")
    warned = imported(tmp_path)
    assert "tensorflowonspark 2.2.5 is installed together with hearth-spark" in warned
    assert "pip install --force-reinstall --no-deps hearth-spark" in warned
