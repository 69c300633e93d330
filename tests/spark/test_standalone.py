"""Recovery on a Master with Workers; in a process of its own, as a session is one per process."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOAK = HERE.parent / "soak" / "soak.py"

# Trains twice, once while the disk is full for some of the snapshots.
FULL_DISK = """
import os, sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import conftest, faults
from standalone import StandaloneCluster
from hearth import spark_session
from hearth.caffeonspark import CaffeOnSpark, DataSource

os.environ.update([conftest.MARK.split("=")])
with tempfile.TemporaryDirectory() as folder, StandaloneCluster(Path(folder)) as cluster:
    spark = spark_session.start("full-disk", executors=2, master=cluster.url)
    digits = conftest.Digits(Path(folder))

    def train(on_event):
        solver = digits.solver("cos", max_iter=200, snapshot=20, random_seed=5)
        source = DataSource(spark).getSource(digits.config(spark, solver, clusterSize="2"), True)
        CaffeOnSpark(spark, on_event=on_event).train(source)
        return on_event.of("done")[0]["weights_sha256"]

    disk = faults.FullDisk(40, 120)
    same = train(faults.Quiet()) == train(disk)
    failed, restarts = len(disk.failed_snapshots()), len(disk.of("restart"))
    print("some failed", failed > 0, "restarts", restarts, "same", same)
    spark.stop()
"""


def test_a_training_survives_kills_on_a_standalone_cluster():
    command = [sys.executable, str(SOAK), "--standalone", "--kills", "3", "--iterations", "400"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "model right: True" in done.stdout


def test_a_full_disk_costs_only_snapshots_on_a_standalone_cluster():
    command = [sys.executable, "-c", FULL_DISK, str(HERE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "some failed True restarts 0 same True" in done.stdout
