"""Puts Hadoop's jars on CLASSPATH, for libraries that start a JVM, such as libhdfs."""

from __future__ import annotations

import os


def add_hadoop_classpath() -> None:
    """Puts Hadoop's jars on CLASSPATH once, if HADOOP_PREFIX names an installation."""
    if "HADOOP_PREFIX" not in os.environ or "TFOS_CLASSPATH_UPDATED" in os.environ:
        return
    import subprocess

    hadoop = os.path.join(os.environ["HADOOP_PREFIX"], "bin", "hadoop")
    jars = subprocess.check_output([hadoop, "classpath", "--glob"], text=True).strip()
    os.environ["CLASSPATH"] = os.pathsep.join(filter(None, [os.environ.get("CLASSPATH"), jars]))
    os.environ["TFOS_CLASSPATH_UPDATED"] = "1"
