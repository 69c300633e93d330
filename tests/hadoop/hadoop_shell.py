"""`make hadoop-shell`: a shell with a new Hadoop cluster; leaving the shell ends the cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hadoop_cluster import HadoopCluster


def main() -> int:
    """Returns the shell's exit status."""
    with HadoopCluster() as hadoop:
        home = Path(sys.executable).parent
        environment = {**os.environ, **hadoop.environment()}
        environment["PATH"] = f"{home}:{environment['PATH']}"
        print(
            f"HDFS     {hadoop.uri}, {hadoop.webhdfs}; its superuser: HADOOP_USER_NAME=hdfs\n"
            f"YARN     {hadoop.yarn}, 2 nodes\n"
            f"settings {environment['HADOOP_CONF_DIR']} (HADOOP_CONF_DIR)\n"
            f"logs     {hadoop.folder / 'log'}, containers' in {hadoop.folder}/node*/containers\n"
            "on PATH  hdfs dfs|dfsadmin|fsck, hadoop fs, yarn application|node|logs, python\n"
            "`exit` ends the cluster and removes its folder.",
            flush=True,
        )
        return subprocess.run([os.environ.get("SHELL", "/bin/sh")], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
