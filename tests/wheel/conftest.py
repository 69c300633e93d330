"""The wheel, and environments in which it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
sys.path.insert(0, str(ROOT / "tools"))

Run = Callable[..., str]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `make wheel` writes."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        ["make", "wheel", f"DIST={folder}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (path,) = folder.glob(f"hearth_spark-*-{sys.implementation.cache_tag.replace('ython-', '')}-*")
    return path


def install(wheel: Path, folder: Path, extras: str = "") -> Path:
    """Installs the wheel and its dependencies in a new virtual environment."""
    venv.create(folder, with_pip=False, symlinks=True)
    command = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install"]
    done = subprocess.run(
        [*command, "--disable-pip-version-check", "--quiet", f"{wheel}{extras}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment with the wheel and all extras; being large, it is deleted afterwards."""
    folder = tmp_path_factory.mktemp("environment")
    yield install(wheel, folder, "[caffe,tensorflow,spark,plot]")
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def caffe_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment with the wheel and its Caffe engine, and nothing else."""
    folder = tmp_path_factory.mktemp("caffe")
    yield install(wheel, folder, "[caffe]")
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def bare_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with only the wheel: no torch, TensorFlow or Spark."""
    return install(wheel, tmp_path_factory.mktemp("bare"))


@pytest.fixture
def run() -> Run:
    """A function that runs a program of an environment in a folder, without variables that point to
    this checkout, and returns its output.
    """

    def run(environment: Path, folder: Path, *command: str, status: int = 0) -> str:
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HEARTH", "PYTHON", "LD_", "VIRTUAL_ENV"))
        }
        done = subprocess.run(
            [str(environment / "bin" / command[0]), *command[1:]],
            cwd=folder, env=clean, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run
