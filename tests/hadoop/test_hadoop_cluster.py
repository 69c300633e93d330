"""The tests' own Hadoop: it serves, refuses what a real one refuses, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
from pathlib import Path

import pytest

# A cluster whose owner is about to be killed: prints its folder once its processes run.
_OWNER = """
import sys, time
from hadoop_cluster import HadoopCluster
cluster = HadoopCluster()
cluster.wait_until_ready = cluster._make_folders = lambda: None
cluster.start()
print(cluster.folder, flush=True)
time.sleep(600)
"""


def test_hdfs_keeps_files_of_a_user_from_others(hadoop, tmp_path):
    (tmp_path / "words").write_text("some words")
    home = f"/user/{hadoop.user}"
    hadoop.run("hdfs", "dfs", "-put", str(tmp_path / "words"), f"{home}/words")
    assert hadoop.web("GET", f"{home}/words", "GETFILESTATUS")["FileStatus"]["length"] == 10
    with pytest.raises(urllib.error.HTTPError, match="403"):
        hadoop.web("PUT", f"{home}/theirs", "MKDIRS", user="stranger")


def test_both_nodes_take_containers(hadoop):
    metrics = hadoop.cluster("metrics")["clusterMetrics"]
    assert (metrics["activeNodes"], metrics["totalMB"]) == (2, 8192)


def processes_of(folder: str) -> list[str]:
    """Command lines that name the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if folder in command:
            found.append(command)
    return found


def test_nothing_is_left_where_its_owner_is_killed():
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert owner.stdout is not None
    folder = owner.stdout.readline().strip()
    assert len(processes_of(folder)) >= 6  # five daemons, and who keeps them
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    deadline = time.monotonic() + 60
    while (processes_of(folder) or Path(folder).exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not processes_of(folder)
    assert not Path(folder).exists()
