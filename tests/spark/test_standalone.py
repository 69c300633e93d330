"""Faults on a standalone cluster; each session runs in a separate process."""

import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from conftest import MARK
from faults import check_nothing_left, processes_with
from standalone import GPU_DISCOVERY, StandaloneCluster
from waiting import wait_until

# The limit includes the cluster's start on a busy machine.
pytestmark = pytest.mark.timeout(600)

HERE = Path(__file__).resolve().parent
SOAK = HERE.parent / "soak" / "soak.py"

# Defines `train(on_event)`, which returns the SHA-256 of the trained weights.
BEGIN = """
import sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import conftest, faults
from hearth.spark import session as spark_session
from hearth.caffeonspark import CaffeOnSpark, DataSource

spark = spark_session.start("faults", executors=2, master=sys.argv[2])
digits = conftest.Digits(Path(sys.argv[3]))

def train(on_event, **settings):
    settings = {"max_iter": 200, "snapshot": 20, "random_seed": 5, **settings}
    solver = digits.solver("cos", **settings)
    source = DataSource(spark).getSource(digits.config(spark, solver, clusterSize="2"), True)
    CaffeOnSpark(spark, on_event=on_event).train(source)
    return on_event.of("done")[0]["weights_sha256"]
"""

ENDLESS = """
train(lambda event: print(event["event"], flush=True), max_iter=1000000, snapshot=10)
"""


# Starts an endless training, and prints the GPUs visible to each trainer.
GPUS = """
class Seen(Exception):
    pass

def look(event):
    if event["event"] == "ready":
        raise Seen(*sorted({*map(visible, Path("/proc").glob("[0-9]*"))} - {None, ""}))

def visible(process):
    try:
        words = (process / "cmdline").read_bytes().split(b"\\0")
        variables = (process / "environ").read_text().split("\\0")
    except OSError:
        return None
    named = [text.partition("=")[2] for text in variables if text.startswith("CUDA_VISIBLE_")]
    return named[0] if named and b"--control-fd" in words else None

try:
    train(look, max_iter=1000000, snapshot=0, snapshot_after_train="false")
except Seen as seen:
    print("seen", *seen.args)
spark.stop()
"""

# Tasks request no GPU. Prints the GPUs visible to the two nodes that run the model.
PREDICT = """
import sys
from hearth.ml import predict, release_devices
from hearth.spark import session as spark_session

spark = spark_session.start("devices", executors=2, master=sys.argv[1])

def make():
    import os
    import numpy as np
    return lambda x: np.full(len(x), os.environ["CUDA_VISIBLE_DEVICES"])

found = predict(spark.range(0, 40, 1, 4), make, "id", "seen string", devices=2).collect()
print("seen", len(found), *sorted({row.seen for row in found}))
release_devices()
spark.stop()
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """The URL of a Master with two Workers, whose processes inherit the session's mark.

    Each Worker believes that it has two GPUs.
    """
    os.environ.update([MARK.split("=")])
    folder = tmp_path_factory.mktemp("standalone")
    with pytest.MonkeyPatch.context() as patch:
        # Executors must be able to import the soak test's Python layer.
        patch.setenv("PYTHONPATH", str(SOAK.parent), prepend=os.pathsep)
        script = folder / "gpus.sh"
        script.write_text(GPU_DISCOVERY)
        script.chmod(0o755)
        gpus = "-Dspark.worker.resource.gpu"
        options = f"{gpus}.amount=2 {gpus}.discoveryScript={script}"
        with StandaloneCluster(folder, daemon_options=options) as cluster:
            yield cluster.url


def test_a_training_survives_kills_on_a_standalone_cluster(master):
    command = [sys.executable, str(SOAK), "--only", "files", "--kills", "3", "--seed", "1"]
    command += ["--master", master]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "well: True" in done.stdout


def test_ranks_see_only_the_gpus_that_spark_granted(master, tmp_path):
    amounts = " ".join(f"--conf spark.{who}.resource.gpu.amount=2" for who in ("executor", "task"))
    environment = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": f"{amounts} {os.environ['PYSPARK_SUBMIT_ARGS']}",
    }
    command = [sys.executable, "-c", BEGIN + GPUS, str(HERE), master, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "seen 4,5 6,7" in done.stdout


def test_nodes_get_the_gpus_that_tasks_do_not_request(master):
    options = f"--conf spark.executor.resource.gpu.amount=2 {os.environ['PYSPARK_SUBMIT_ARGS']}"
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": options}
    command = [sys.executable, "-c", PREDICT, master]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(r"seen 40 [45] [67]\n", done.stdout), done.stdout


def test_a_killed_driver_leaves_no_process_on_a_standalone_cluster(master, tmp_path):
    mark = f"KILLED_DRIVER={uuid.uuid4()}"
    name, value = mark.split("=")
    options = f"--conf spark.executorEnv.{name}={value} {os.environ['PYSPARK_SUBMIT_ARGS']}"
    temporary = tmp_path / "tmp"
    for folder in ("tmp", "files"):
        (tmp_path / folder).mkdir()
    environment = {**os.environ, name: value, "PYSPARK_SUBMIT_ARGS": options}
    shared = set(os.listdir("/dev/shm"))
    driver = subprocess.Popen(
        [sys.executable, "-c", BEGIN + ENDLESS, str(HERE), master, str(tmp_path / "files")],
        env={**environment, "TMPDIR": str(temporary)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert wait_until(lambda: driver.stdout.readline().strip() == "progress", 120)
        assert sum("--control-fd" in line for line in processes_with(mark)) == 2
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    check_nothing_left(mark, temporary, shared)
    assert not list((tmp_path / "files").rglob("*.tmp"))
