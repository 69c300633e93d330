"""One Hadoop cluster for all tests of this folder, the digits in its HDFS, one session on YARN."""

from __future__ import annotations

import os
import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hadoop_cluster import HadoopCluster
from yarn_programs import caffe_on_spark

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
sys.path.insert(0, str(DIGITS))

# A machine that others use, too, starts a JVM in many seconds, and an application starts four.
_TEST_S = 900
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(_TEST_S))


def _spark_settings() -> dict[str, str]:
    """Small executors that start quickly: Spark's jars are where this machine has them."""
    import pyspark

    settings = {
        "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
        "spark.executor.instances": "2",
        "spark.executor.memory": "512m",
        # The default of 384 MB is too little for a heap that is used wholly and a trainer.
        "spark.executor.memoryOverhead": "640m",
        "spark.driver.memory": "512m",
        "spark.yarn.am.memory": "384m",
        "spark.driver.extraJavaOptions": _QUICK,
        "spark.executor.extraJavaOptions": _QUICK,
        "spark.yarn.am.extraJavaOptions": _QUICK,
        "spark.yarn.report.interval": "200",
        "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
        "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
        "spark.hadoop.yarn.client.application-client-protocol.poll-interval-ms": "100",
        "spark.pyspark.python": sys.executable,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    if native := os.environ.get("HEARTH_NATIVE_DIR"):  # another folder's binaries
        settings["spark.executorEnv.HEARTH_NATIVE_DIR"] = native
        settings["spark.yarn.appMasterEnv.HEARTH_NATIVE_DIR"] = native
    return settings


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory) -> Iterator[HadoopCluster]:
    """The cluster; this process, and what it starts, finds it as a user's would: by variables."""
    with HadoopCluster() as cluster:
        before = dict(os.environ)
        conf = tmp_path_factory.mktemp("spark-conf")
        lines = [f"{key} {value}" for key, value in _spark_settings().items()]
        (conf / "spark-defaults.conf").write_text("\n".join(lines) + "\n")
        os.environ.update(cluster.environment())
        os.environ.update(SPARK_CONF_DIR=str(conf), SPARK_LOCAL_IP="127.0.0.1")
        os.environ["SPARK_SUBMIT_OPTS"] = _QUICK
        yield cluster
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def spark(hadoop):
    from hearth.spark import session as spark_session

    session = spark_session.start("hearth-tests", master="yarn")
    yield session
    spark_session.stop(session)


class Digits:
    """Solvers and nets in a local folder, whose rows are in HDFS: /user/NAME/digits."""

    def __init__(self, hadoop: HadoopCluster, folder: Path):
        import prepare

        self.folder, self.home = folder, f"{hadoop.uri}/user/{hadoop.user}"
        prepare.write_tables(folder / "work")
        hadoop.run("hdfs", "dfs", "-put", str(folder / "work"), f"{self.home}/digits")
        for file in DIGITS.glob("*.prototxt"):
            text = file.read_text().replace('"file:work/', f'"{self.home}/digits/')
            (folder / file.name).write_text(text)

    def solver(self, **settings: object) -> str:
        """Writes a solver of the net of raw pixels, with other settings; None takes one out."""
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
    """What the command has left that trains and tests: its means; the model is in HDFS."""
    solver = digits.solver(max_iter=200, snapshot=100, snapshot_prefix='"lenet"')
    done = caffe_on_spark(
        "-train", "-test", "-conf", solver, "-clusterSize", "2", "-persistent",
        "-model", "models/lenet.caffemodel", "-output", "means.txt", folder=digits.folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done
