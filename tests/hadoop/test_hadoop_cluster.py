"""The tests' own Hadoop: it works, refuses what a real one refuses, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
from collections.abc import Callable
from pathlib import Path

import pytest

# Owns a cluster until it is killed: prints the cluster's folder once the processes run.
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
        hadoop.web("PUT", f"{home}/theirs", "MKDIRS", user="another")


def test_both_nodes_take_containers(hadoop):
    metrics = hadoop.cluster("metrics")["clusterMetrics"]
    assert (metrics["activeNodes"], metrics["totalMB"]) == (2, 16384)


def processes_of(folder: str) -> list[str]:
    """Command lines of the processes that name the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if folder in command:
            found.append(command)
    return found


def wait_until(state: Callable[[], bool]) -> bool:
    """Whether the state becomes true within a minute."""
    deadline = time.monotonic() + 60
    while not (reached := state()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return reached


def test_the_keeper_kills_orphaned_processes(tmp_path):
    folder = tmp_path / "cluster"
    folder.mkdir()
    program = str(Path(__file__).with_name("hadoop_keeper.py"))
    keeper = subprocess.Popen(
        [sys.executable, program, str(folder), "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert keeper.stdin is not None and keeper.stdout is not None
    # Like a container whose NodeManager was killed: in a separate session, and orphaned.
    orphan = f"sleep 600.0{os.getpid()}"
    order = {"command": ["sh", "-c", f"setsid {orphan} & exit 0"], "environment": dict(os.environ)}
    keeper.stdin.write(json.dumps({**order, "log": str(folder / "log")}) + "\n")
    keeper.stdin.flush()
    assert int(keeper.stdout.readline()) > 0
    assert wait_until(lambda: bool(processes_of(orphan)))
    keeper.stdin.close()
    keeper.wait(60)
    keeper.stdout.close()
    assert not folder.exists()
    assert wait_until(lambda: not processes_of(orphan))


def test_no_process_survives_a_killed_owner():
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert owner.stdout is not None
    folder = owner.stdout.readline().strip()
    assert len(processes_of(folder)) >= 6  # five daemons and their keeper
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert wait_until(lambda: not processes_of(folder) and not Path(folder).exists())
