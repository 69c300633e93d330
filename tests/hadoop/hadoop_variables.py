"""A user's environment for the tests' cluster: variables and Spark's default settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hadoop_cluster import HadoopCluster

_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")


def _spark_settings(java_options: str) -> dict[str, str]:
    """Small executors that start quickly, because they use this machine's copy of Spark's jars."""
    import pyspark

    settings = {
        "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
        "spark.executor.instances": "2",
        "spark.executor.memory": "512m",
        # The default of 384 MB is too little for a trainer and a heap that is in full use.
        "spark.executor.memoryOverhead": "640m",
        "spark.driver.memory": "512m",
        "spark.yarn.am.memory": "384m",
        "spark.driver.extraJavaOptions": java_options,
        "spark.executor.extraJavaOptions": java_options,
        "spark.yarn.am.extraJavaOptions": java_options,
        "spark.yarn.report.interval": "200",
        "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
        "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
        "spark.hadoop.yarn.client.application-client-protocol.poll-interval-ms": "100",
        "spark.pyspark.python": sys.executable,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    if native := os.environ.get("HEARTH_NATIVE_DIR"):  # the binaries are in another folder
        settings["spark.executorEnv.HEARTH_NATIVE_DIR"] = native
        settings["spark.yarn.appMasterEnv.HEARTH_NATIVE_DIR"] = native
    return settings


@contextmanager
def found_by_variables(cluster: HadoopCluster, conf: Path) -> Iterator[None]:
    """Within the block, this process and its children use the cluster. `conf`: an empty folder."""
    before = dict(os.environ)
    java_options = " ".join([*_QUICK, *cluster.java_options])
    lines = [f"{key} {value}" for key, value in _spark_settings(java_options).items()]
    (conf / "spark-defaults.conf").write_text("\n".join(lines) + "\n")
    os.environ.update(cluster.environment())
    os.environ.update(SPARK_CONF_DIR=str(conf), SPARK_LOCAL_IP="127.0.0.1")
    os.environ["SPARK_SUBMIT_OPTS"] = java_options
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
