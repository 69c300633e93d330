"""Shared by all tests of this folder: one Hadoop cluster with the digits in its HDFS, and one
session on YARN.
"""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hadoop_cluster import HadoopCluster
from hadoop_variables import found_by_variables
from yarn_programs import caffe_on_spark

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "python" / "hearth" / "demo"
sys.path.insert(0, str(DIGITS))

# On a busy machine a JVM may take many seconds to start, and an application starts four.
_TEST_S = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(_TEST_S))


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory) -> Iterator[HadoopCluster]:
    """The cluster. This process and its children find it by environment variables, like a user."""
    with HadoopCluster() as cluster, found_by_variables(cluster, tmp_path_factory.mktemp("conf")):
        yield cluster


@pytest.fixture(scope="session")
def spark(hadoop):
    from hearth.spark import session as spark_session

    session = spark_session.start("hearth-tests", master="yarn")
    yield session
    spark_session.stop(session)


class Digits:
    """Solvers and nets in a local folder; their rows are in HDFS: /user/NAME/digits."""

    def __init__(self, hadoop: HadoopCluster, folder: Path):
        import prepare

        self.folder, self.home = folder, f"{hadoop.uri}/user/{hadoop.user}"
        prepare.write_tables(folder / "work")
        hadoop.run("hdfs", "dfs", "-put", str(folder / "work"), f"{self.home}/digits")
        for file in DIGITS.glob("*.prototxt"):
            text = file.read_text().replace('"file:work/', f'"{self.home}/digits/')
            (folder / file.name).write_text(text)

    def solver(self, **settings: object) -> str:
        """Writes a solver for the net of raw pixels, with changed settings; None removes one."""
        text = (self.folder / "lenet_cos_solver.prototxt").read_text()
        for key, value in settings.items():
            text = re.sub(rf"(?m)^{key}: .*\n", "", text)
            text += "" if value is None else f"{key}: {value}\n"
        path = self.folder / f"{uuid.uuid4().hex[:8]}_solver.prototxt"
        path.write_text(text)
        return str(path)

    def config(self, spark, solver: str, **flags: object):
        from hearth.caffeonspark import Config

        return Config(spark, {"conf": solver, "clusterSize": "2", **flags})


@pytest.fixture(scope="session")
def digits(hadoop, tmp_path_factory) -> Digits:
    return Digits(hadoop, tmp_path_factory.mktemp("digits"))


@pytest.fixture(scope="session")
def trained(hadoop, digits):
    """Trains and tests by a command whose model goes to HDFS; returns its output, the means."""
    solver = digits.solver(max_iter=200, snapshot=100, snapshot_prefix='"lenet"')
    done = caffe_on_spark(
        "-train", "-test", "-conf", solver, "-clusterSize", "2", "-persistent",
        "-model", "models/lenet.caffemodel", "-output", "means.txt", folder=digits.folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done
