"""Nodes without hearth: spark-submit --archives distributes the archive of `hearth pack`."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from yarn_programs import (
    GOAL,
    accuracy,
    content,
    last_application,
    names,
    run_program,
    spark_submit,
)

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
from bare_python import bare_python  # noqa: E402


@pytest.fixture(scope="module")
def node_python(tmp_path_factory) -> str:
    """The nodes' Python interpreter."""
    folder = tmp_path_factory.mktemp("node")
    python = bare_python(folder)
    asked = [python, "-c", "import importlib.util as u; print(u.find_spec('hearth'))"]
    assert subprocess.check_output(asked, text=True, cwd=folder).strip() == "None"
    return python


class Submitted:
    """Runs the commands that `hearth pack` prints; the nodes have another Python."""

    def __init__(self, folder: Path, python: str):
        self._folder, self._python = folder, python
        self.archive = str(folder / "hearth.tar")

    def commands(self, *words: str) -> list[list[str]]:
        """Packs for a program; returns its commands for client and cluster mode."""
        pack = [sys.executable, "-m", "hearth.cli", "pack", "-o", self.archive, "--", *words]
        said = subprocess.check_output(pack, text=True, cwd=self._folder)
        lines = said.replace(" \\\n", " ").splitlines()
        return [shlex.split(line)[1:] for line in lines if line.startswith("spark-submit ")]

    def run(self, command: list[str]) -> subprocess.CompletedProcess:
        own = ["--conf", f"spark.pyspark.python={self._python}"]
        own += ["--conf", "spark.yarn.maxAppAttempts=1"]
        for prefix in ("executorEnv", "yarn.appMasterEnv"):
            own += ["--conf", f"spark.{prefix}.HEARTH_NATIVE_DIR="]
        if "cluster" not in command:
            own += ["--conf", f"spark.pyspark.driver.python={sys.executable}"]
        done = run_program(spark_submit(), *own, *command, folder=self._folder)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
        return done


@pytest.fixture(scope="module")
def submitted(digits, node_python) -> Submitted:
    return Submitted(digits.folder, node_python)


def test_executors_without_hearth_train_by_the_archive(hadoop, digits, submitted):
    solver = digits.solver(max_iter=100, snapshot=0, snapshot_after_train="false")
    words = ["-conf", solver, "-clusterSize", "2", "-model", "packed/lenet.caffemodel"]
    client, _ = submitted.commands("-train", *words)
    said = submitted.run(client).stdout  # spark-submit merges Python's two streams
    assert f"The model is {digits.home}/packed/lenet.caffemodel" in said
    assert names(hadoop, "packed") == ["lenet.caffemodel"]


def test_a_driver_without_hearth_resumes_and_tests_by_the_archive(
    hadoop, digits, submitted, trained
):
    state = f"{digits.home}/models/lenet_iter_200.solverstate"
    solver = digits.solver(max_iter=240, snapshot=0, snapshot_after_train="false")
    _, cluster = submitted.commands(
        "-train", "-test", "-conf", solver, "-clusterSize", "2",
        "-snapshot", state, "-weights", state.replace("solverstate", "caffemodel"),
        "-model", "resumed/lenet.caffemodel", "-output", "resumed/means.txt",
    )  # fmt: skip
    hadoop.run("hdfs", "dfs", "-put", submitted.archive, f"{digits.home}/hearth.tar")
    remote = f"{digits.home}/hearth.tar#hearth_pack"
    submitted.run([word.replace(f"{submitted.archive}#hearth_pack", remote) for word in cluster])
    assert last_application(hadoop)["finalStatus"] == "SUCCEEDED"
    assert names(hadoop, "resumed") == ["lenet.caffemodel", "means.txt"]
    assert accuracy(content(hadoop, "resumed/means.txt").decode()) > GOAL


def test_a_tensorflow_program_is_submitted_as_it_is(hadoop, tmp_path):
    tmp_path.chmod(0o777)
    program = str(ROOT / "examples" / "tensorflow" / "feed.py")
    done = run_program(
        spark_submit(), "--master", "yarn", "--deploy-mode", "client", "--num-executors", "1",
        "--conf", "spark.executor.memoryOverhead=2g",
        program, "--export", str(tmp_path / "model"), folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    assert float(done.stdout.split("accuracy: ")[1]) > GOAL
