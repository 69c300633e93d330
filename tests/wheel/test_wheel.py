"""The wheel: built from this checkout, installed beside torch, used from an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# The first build of a wheel compiles everything; the compiler cache makes it a copy after `make`.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that `make wheel` writes."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        ["make", "wheel", f"DIST={folder}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (path,) = folder.glob("hearth_spark-*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and, by links, the packages that it runs with."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(("hearth", "__pycache__")):
            (packages / entry.name).symlink_to(entry)
    # oneDNN's package puts its library into the environment's own lib folder.
    for library in Path(sys.prefix, "lib").glob("libdnnl.so*"):
        (folder / "lib" / library.name).symlink_to(library)
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install",
         "--no-deps", "--no-index", str(wheel)],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


def run(environment: Path, folder: Path, *command: str) -> str:
    """Output of a program of the environment, run in `folder`, with nothing set that names us."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HEARTH", "PYTHON", "LD_", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        [str(environment / "bin" / command[0]), *command[1:]],
        cwd=folder, env=clean, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_wheel_carries_program_libraries_and_package(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"hearth/native/hearth", "hearth/native/libhearth_feed.so", "hearth/cli.py"} <= names
    for module in ("_core", "_caffe"):
        assert any(name.startswith(f"hearth/native/{module}.") for name in names), module
    assert not any("test" in name or name.startswith("torch") for name in names), sorted(names)


def test_modules_are_those_of_the_wheel(environment: Path, tmp_path: Path) -> None:
    code = "from hearth.native import _core, _caffe; print(_core.__file__, _caffe.__file__)"
    for path in run(environment, tmp_path, "python", "-c", code).split():
        assert path.startswith(str(environment)), path


def test_the_program_trains(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "solver.prototxt").write_text(
        """
        base_lr: 0.1 lr_policy: "fixed" max_iter: 3 snapshot_prefix: "net"
        net_param {
          layer {
            name: "data" type: "DummyData" top: "x" top: "y"
            dummy_data_param {
              shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 }
              data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 }
            }
          }
          layer {
            name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
            inner_product_param { num_output: 2 weight_filler { type: "xavier" } }
          }
          layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" }
        }
        """
    )
    log = run(environment, tmp_path, "hearth", "train", "--solver=solver.prototxt")
    assert "Optimization Done" in log, log
    assert (tmp_path / "net_iter_3.caffemodel").exists()


def test_caffes_programs_are_installed_by_their_names(environment: Path, tmp_path: Path) -> None:
    assert "Compute threads" in run(environment, tmp_path, "caffe", "device_query")
    for tool in ("convert_imageset", "extract_features", "upgrade_net_proto_text"):
        assert f"Usage: hearth {tool}" in run(environment, tmp_path, tool, "--help")
