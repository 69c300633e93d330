"""The wheel: built from this checkout, installed with its extras, and used from an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from program import write_solver

import tag_wheel

# The first build of a wheel compiles everything; after `make`, the compiler cache has it all.
pytestmark = pytest.mark.timeout(1800)
Run = Callable[..., str]


def test_the_wheel_carries_program_libraries_and_package(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"hearth/native/hearth", "hearth/native/libhearth_feed.so", "hearth/cli.py"} <= names
    for plugin in ("files", "collective"):  # present if TensorFlow is installed
        assert f"hearth/native/libhearth_tensorflow_{plugin}.so" in names
    for module in ("_core", "_caffe"):
        assert any(name.startswith(f"hearth/native/{module}.") for name in names), module
    assert {"hearth/demo/run.py", "hearth/demo/digits.npz", "hearth/tools/pack.py"} <= names
    # `make demo` leaves files among the example's files.
    assert not [name for name in names if name.startswith("hearth/demo/work/")]
    tests = [name for name in names if "/test_" in name or name.endswith(("_test", "_testing.py"))]
    assert not tests and not any(name.startswith("torch") for name in names), sorted(names)


def test_auditwheel_finds_nothing_newer_than_manylinux_2_28(wheel: Path) -> None:
    assert wheel.name.endswith("-manylinux_2_28_x86_64.whl")
    found = tag_wheel.verdict(wheel)
    assert tag_wheel.objections(found) == []
    # These libraries come with an extra's package or with the system (docs/install.md).
    assert set(found["external_libs"]) <= tag_wheel.OTHERS
    assert wheel.stat().st_size < 30e6


def test_a_wheel_with_newer_symbols_or_other_libraries_is_refused() -> None:
    found = {"sym_tag": "manylinux_2_31_x86_64", "external_libs": {"libdnnl.so.3": None}}
    assert tag_wheel.objections({**found, "policy_upgrades": {}}) == [
        "has symbols of manylinux_2_31_x86_64"
    ]
    found = {"sym_tag": "manylinux_2_17_x86_64", "external_libs": {"libhdf5.so.103": None}}
    assert tag_wheel.objections({**found, "policy_upgrades": {}}) == ["needs libhdf5.so.103"]
    assert tag_wheel.objections({**found, "sym_tag": "linux_x86_64", "policy_upgrades": {}})[1:]


def test_a_file_with_newer_symbols_and_another_library_is_found(
    wheel: Path, tmp_path: Path
) -> None:
    source = "#include <stdlib.h>\nunsigned f(void) { return arc4random(); }\n"  # needs glibc 2.36
    tool = [sys.executable, "-m", "wheel"]
    subprocess.run([*tool, "unpack", "--dest", tmp_path, wheel], check=True)
    (root,) = tmp_path.iterdir()
    compiler = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-Wl,--no-as-needed", "-lcrypto"]
    output = ["-o", root / "hearth" / "native" / "extra.so"]
    subprocess.run([*compiler, *output], input=source, text=True, check=True)
    subprocess.run([*tool, "pack", "--dest-dir", tmp_path, root], check=True)
    (changed,) = tmp_path.glob("*.whl")
    said = tag_wheel.objections(tag_wheel.verdict(changed))
    assert any(text.startswith("needs libcrypto.so") for text in said), said
    assert any(text.startswith("has symbols of manylinux_2_36") for text in said), said


def test_modules_are_those_of_the_wheel(environment: Path, tmp_path: Path, run: Run) -> None:
    code = "from hearth.native import _core, _caffe; print(_core.__file__, _caffe.__file__)"
    for path in run(environment, tmp_path, "python", "-c", code).split():
        assert path.startswith(str(environment)), path


def test_the_program_trains(environment: Path, tmp_path: Path, run: Run) -> None:
    write_solver(tmp_path, 'max_iter: 3 snapshot_prefix: "net"')
    log = run(environment, tmp_path, "hearth", "train", "--solver=solver.prototxt")
    assert "Optimization Done" in log, log
    assert (tmp_path / "net_iter_3.caffemodel").exists()


def test_caffes_programs_are_installed_by_their_names(
    environment: Path, tmp_path: Path, run: Run
) -> None:
    assert "Compute threads" in run(environment, tmp_path, "caffe", "device_query")
    for tool in ("convert_imageset", "extract_features", "upgrade_net_proto_text"):
        assert f"Usage: hearth {tool}" in run(environment, tmp_path, tool, "--help")


# Trains nothing: passes three rows through a node's feed into a file that the test reads.
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


def test_a_cluster_feeds_its_nodes(environment: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "feed.py").write_text(FEED)
    run(environment, tmp_path, "python", "feed.py")
    assert (tmp_path / "taken").read_text() == "taken 3"


def test_the_demo_trains_within_two_minutes(environment: Path, tmp_path: Path, run: Run) -> None:
    start = time.monotonic()
    said = run(environment, tmp_path, "python", "-m", "hearth.demo")
    print(f"hearth.demo: {time.monotonic() - start:.1f} s")  # has no limit: machines differ
    assert "LogisticRegression" in said and "accuracy 0.9" in said


def test_an_archive_of_the_wheel_trains(environment: Path, tmp_path: Path, run: Run) -> None:
    said = run(environment, tmp_path, "hearth", "pack", "-o", "packed.tar")
    assert "spark-submit --master yarn" in said
    with tarfile.open(tmp_path / "packed.tar") as archive:
        archive.extractall(tmp_path / "packed", filter="data")
    program = tmp_path / "packed" / "bin" / "hearth"
    known = {"PATH": os.environ["PATH"], "PYSPARK_PYTHON": str(environment / "bin" / "python")}
    done = subprocess.run([program, "device_query"], env=known, capture_output=True, text=True)
    assert "Compute threads" in done.stdout + done.stderr, done


def test_tensorflowonspark_can_be_imported(environment: Path, tmp_path: Path, run: Run) -> None:
    code = "from tensorflowonspark import TFCluster, TFNode, pipeline; import tensorflow"
    run(environment, tmp_path, "python", "-c", code)


def test_without_torch_everything_but_caffe_is_there(
    bare_environment: Path, tmp_path: Path, run: Run
) -> None:
    code = "import hearth.cluster, hearth.files; from hearth.native import _core; print('whole')"
    assert "whole" in run(bare_environment, tmp_path, "python", "-c", code)
    said = run(bare_environment, tmp_path, "hearth", "train", "--solver=none", status=1)
    assert said.count("\n") == 1 and "hearth-spark[caffe]" in said, said
