"""The wheel, and environments that have it."""

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
    """The file that `make wheel` writes."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        ["make", "wheel", f"DIST={folder}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (path,) = folder.glob(f"hearth_spark-*-{sys.implementation.cache_tag.replace('ython-', '')}-*")
    return path


def install(wheel: Path, folder: Path, extras: str = "") -> Path:
    """A fresh virtual environment with the wheel and its dependencies."""
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
    """An environment with the wheel and all of its extras: gigabytes, so it goes at the end."""
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
    """An environment with the wheel and no extra: neither torch nor TensorFlow nor Spark."""
    return install(wheel, tmp_path_factory.mktemp("bare"))


@pytest.fixture
def run() -> Run:
    """Output of a program of an environment, run in a folder, with nothing set that names us."""

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
