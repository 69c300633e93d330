"""The command line reports errors in one line, before it starts Spark."""

import subprocess
import sys

import pytest


def run(*arguments):
    command = [sys.executable, "-m", "hearth.caffeonspark", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def prototxts(tmp_path):
    (tmp_path / "solver.prototxt").write_text('net: "net.prototxt"\nmax_iter: 1\n')
    (tmp_path / "net.prototxt").write_text('layer { name: "a" tpye: "ReLU" }\n')
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-train", "-konf", "a"], "-konf"),
        (["-train"], "-conf is missing"),
        (["-conf", "a"], "nothing to do"),
        (["-train", "-conf", "/nowhere/solver.prototxt"], "/nowhere/solver.prototxt"),
        (["-train", "-conf", "hdfs://host/solver.prototxt"], "local path"),
        (["-train", "-conf", "{folder}/solver.prototxt"], "net.prototxt:1:"),
    ],
)
def test_a_users_mistake_is_one_line_and_a_status(prototxts, arguments, said):
    done = run(*(word.format(folder=prototxts) for word in arguments))
    assert done.returncode != 0
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_help_lists_the_flags():
    done = run("-help")
    assert done.returncode == 0
    assert "-clusterSize" in done.stdout


def test_the_package_imports_neither_torch_nor_pyspark():
    code = "import hearth, hearth.caffeonspark.__main__, sys; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'torch'" not in done.stdout
    assert "'pyspark'" not in done.stdout
    assert "'pyarrow'" not in done.stdout
