"""The wheel: built from this checkout, installed with its extras, used from an empty folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
from program import write_solver  # noqa: E402

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


def install(wheel: Path, folder: Path, extras: str = "") -> Path:
    """A fresh virtual environment with the wheel, and with what pip fetches for it."""
    venv.create(folder, with_pip=False, symlinks=True)
    command = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install"]
    done = subprocess.run(
        [*command, "--disable-pip-version-check", "--quiet", f"{wheel}{extras}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment with the wheel and all of its extras: gigabytes, so it goes at the end."""
    folder = tmp_path_factory.mktemp("environment")
    yield install(wheel, folder, "[caffe,tensorflow,spark,plot]")
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def bare_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and no extra: neither torch nor TensorFlow nor Spark."""
    return install(wheel, tmp_path_factory.mktemp("bare"))


def run(environment: Path, folder: Path, *command: str, status: int = 0) -> str:
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
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_wheel_carries_program_libraries_and_package(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"hearth/native/hearth", "hearth/native/libhearth_feed.so", "hearth/cli.py"} <= names
    for plugin in ("files", "collective"):  # where TensorFlow is installed
        assert f"hearth/native/libhearth_tensorflow_{plugin}.so" in names
    for module in ("_core", "_caffe"):
        assert any(name.startswith(f"hearth/native/{module}.") for name in names), module
    assert {"hearth/demo/run.py", "hearth/demo/digits.npz", "hearth/tools/pack.py"} <= names
    # `make demo` has left files beside the example's own.
    assert not [name for name in names if name.startswith("hearth/demo/work/")]
    tests = [name for name in names if "/test_" in name or name.endswith(("_test", "_testing.py"))]
    assert not tests and not any(name.startswith("torch") for name in names), sorted(names)


# What comes with the wheel's dependencies from PyPI, or with any system that has a C++ program.
_BY_PIP = ("libtorch", "libc10", "libdnnl", "libgomp", "libcu", "libnv")


def test_auditwheel_says_what_the_docs_say(wheel: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", "--json", str(wheel)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    text = (ROOT / "docs" / "install.md").read_text()
    assert verdict["overall_tag"] == "linux_x86_64"
    assert f"Its symbols are those of **{verdict['sym_tag'].removesuffix('_x86_64')}**" in text
    needed = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith("hearth/native/") and not name.endswith((".py", ".pyi")):
                path = archive.extract(name, tmp_path)
                shown = subprocess.run(["objdump", "-p", path], capture_output=True, text=True)
                needed |= set(re.findall(r"NEEDED +(lib[\w-]+)", shown.stdout))
    others = {name for name in needed if not name.startswith(_BY_PIP)}
    others -= {"libc", "libm", "libstdc", "libgcc_s", "libpthread", "libdl", "librt"}
    missing = {name for name in others if f"`{name.rstrip('0123456789')}" not in text}
    assert missing <= {"libz"}, missing
    assert "libhdf5_serial" in others


def test_modules_are_those_of_the_wheel(environment: Path, tmp_path: Path) -> None:
    code = "from hearth.native import _core, _caffe; print(_core.__file__, _caffe.__file__)"
    for path in run(environment, tmp_path, "python", "-c", code).split():
        assert path.startswith(str(environment)), path


def test_the_program_trains(environment: Path, tmp_path: Path) -> None:
    write_solver(tmp_path, 'max_iter: 3 snapshot_prefix: "net"')
    log = run(environment, tmp_path, "hearth", "train", "--solver=solver.prototxt")
    assert "Optimization Done" in log, log
    assert (tmp_path / "net_iter_3.caffemodel").exists()


def test_caffes_programs_are_installed_by_their_names(environment: Path, tmp_path: Path) -> None:
    assert "Compute threads" in run(environment, tmp_path, "caffe", "device_query")
    for tool in ("convert_imageset", "extract_features", "upgrade_net_proto_text"):
        assert f"Usage: hearth {tool}" in run(environment, tmp_path, tool, "--help")


# Trains nothing: three rows through a node's feed, into a file that its test looks at.
FEED = """
from pathlib import Path

from hearth import cluster
from hearth.spark import session

def main(arguments, ctx):
    feed, taken = ctx.get_data_feed(), 0
    while not feed.should_stop():
        taken += len(feed.next_batch(8))
    Path(arguments).write_text(f"taken {taken}")

spark = session.start("wheel", executors=1)
with cluster.run(spark, main, str(Path("taken").absolute()), nodes=1) as nodes:
    nodes.train(spark.range(3))
"""


def test_a_cluster_feeds_its_nodes(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "feed.py").write_text(FEED)
    run(environment, tmp_path, "python", "feed.py")
    assert (tmp_path / "taken").read_text() == "taken 3"


def test_the_demo_trains_within_two_minutes(environment: Path, tmp_path: Path) -> None:
    start = time.monotonic()
    said = run(environment, tmp_path, "python", "-m", "hearth.demo")
    print(f"hearth.demo: {time.monotonic() - start:.1f} s")  # a figure, no limit: machines differ
    assert "LogisticRegression" in said and "accuracy 0.9" in said


def test_an_archive_of_the_wheel_trains(environment: Path, tmp_path: Path) -> None:
    said = run(environment, tmp_path, "hearth", "pack", "-o", "packed.tar")
    assert "spark-submit --master yarn" in said
    with tarfile.open(tmp_path / "packed.tar") as archive:
        archive.extractall(tmp_path / "packed", filter="data")
    program = tmp_path / "packed" / "bin" / "hearth"
    known = {"PATH": os.environ["PATH"], "PYSPARK_PYTHON": str(environment / "bin" / "python")}
    done = subprocess.run([program, "device_query"], env=known, capture_output=True, text=True)
    assert "Compute threads" in done.stdout + done.stderr, done


def test_tensorflowonsparks_names_are_there(environment: Path, tmp_path: Path) -> None:
    code = "from tensorflowonspark import TFCluster, TFNode, pipeline; import tensorflow"
    run(environment, tmp_path, "python", "-c", code)


def test_without_torch_all_but_caffe_is_there(bare_environment: Path, tmp_path: Path) -> None:
    code = "import hearth.cluster, hearth.files; from hearth.native import _core; print('whole')"
    assert "whole" in run(bare_environment, tmp_path, "python", "-c", code)
    said = run(bare_environment, tmp_path, "hearth", "train", "--solver=none", status=1)
    assert said.count("\n") == 1 and "hearth-spark[caffe]" in said, said
