"""Run by `make test-torch-versions` with each version of torch: the tests of PyTorch programs that
need no Spark, and the device tests with a device library compiled for that version.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from hearth.tools import build_device

TESTS = Path(__file__).resolve().parents[1] / "python"
DEVICE_TESTS = ["test_device_library.py", "test_program_device.py"]


def pytest(files: list[Path], **variables: str) -> int:
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", *map(str, files)]
    return subprocess.run(command, env={**os.environ, **variables}).returncode


def main() -> int:
    """Returns the exit status of the first step that failed, else that of the device tests."""
    print(f"torch {torch.__version__}", flush=True)
    if status := pytest(sorted(TESTS.glob("test_torch_*.py"))):
        return status
    with tempfile.TemporaryDirectory() as folder:
        if status := build_device.main(["--output", folder]):
            return status
        library = str(Path(folder) / build_device.NAME)
        return pytest([TESTS / name for name in DEVICE_TESTS], HEARTH_DEVICE_LIBRARY=library)


if __name__ == "__main__":
    sys.exit(main())
