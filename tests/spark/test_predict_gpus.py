"""predict(devices=) in sessions whose executors have GPUs and whose tasks may request them.

Each session runs in a separate process because the settings differ.
"""

from __future__ import annotations

import subprocess
import sys

import pyspark
import pytest
from standalone import GPU_DISCOVERY

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

PROGRAM = """
import os, signal, sys, time
from pathlib import Path

import numpy as np
from hearth.ml import predict, release_devices
from hearth.spark import session as spark_session

folder, devices, at_once = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
conf = dict(setting.split("=") for setting in sys.argv[4:])
spark = spark_session.start("gpus", master="local-cluster[2,2,1024]", conf=conf)

def make():
    Path(folder, f"node{os.getpid()}").touch()

    def model(x, own):
        return x * 2, own, np.full(len(x), os.environ["CUDA_VISIBLE_DEVICES"])

    return model

def prepare(id):
    from pyspark import TaskContext

    task = TaskContext.get()
    Path(folder, f"task{task.partitionId()}").touch()
    end = time.monotonic() + 100
    while len(list(Path(folder).glob("task*"))) < at_once:
        assert time.monotonic() < end, "the tasks do not run at the same time"
        time.sleep(0.01)
    own = ",".join(task.resources()["gpu"].addresses) if "gpu" in task.resources() else "none"
    return {"x": id.astype("f8"), "own": np.full(len(id), own)}

def computed(rows):
    made = "y double, own string, seen string"
    found = predict(rows, make, "id", made, 16, devices=devices, prepare=prepare).collect()
    assert [(row.id, row.y) for row in found] == [(n, 2.0 * n) for n in range(400)]
    return found

def nodes():
    return {int(path.name[4:]) for path in Path(folder).glob("node*")}

rows = spark.range(0, 400, 1, 4)
found = computed(rows)
print("tasks", *sorted({row.own for row in found}))
print("nodes", *sorted({row.seen for row in found}))
computed(rows)
assert len(nodes()) == devices
os.kill(min(nodes()), signal.SIGKILL)
while len(nodes()) == devices:  # until a call notices that a node has ended, and starts others
    try:
        computed(rows)
    except Exception as error:
        assert "was killed by SIGKILL" in str(error), error
assert len(nodes()) == 2 * devices
release_devices()
spark.stop()
"""


@pytest.mark.parametrize(
    ("of_executor", "of_task", "devices", "of_nodes"),
    [
        (1, None, 1, {}),
        (1, "1", 2, {}),
        (2, "0.1", 2, {}),
        # With this setting, a training's nodes would occupy all cores, and no GPU.
        (1, None, 2, {"spark.hearth.task.cpus": "2"}),
    ],
)
def test_nodes_get_gpus_and_tasks_none(tmp_path, of_executor, of_task, devices, of_nodes):
    script = tmp_path / "gpus.sh"
    script.write_text(GPU_DISCOVERY)
    script.chmod(0o755)
    conf = {
        "spark.ui.enabled": "false",
        "spark.worker.resource.gpu.amount": "2",
        "spark.worker.resource.gpu.discoveryScript": script,
        "spark.executor.resource.gpu.amount": of_executor,
    }
    conf |= of_nodes
    if of_task:
        conf["spark.task.resource.gpu.amount"] = of_task
    profiles = of_task is None or pyspark.__version__ >= "4"  # DataFrames' tasks use them
    notes = tmp_path / "notes"
    notes.mkdir()
    settings = [f"{key}={value}" for key, value in conf.items()]
    program = [sys.executable, "-c", PROGRAM, str(notes), str(devices), "4" if profiles else "1"]
    done = subprocess.run([*program, *settings], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    tasks, nodes = (line.split()[1:] for line in done.stdout.splitlines())
    assert tasks == ["none"] or not profiles, done.stdout
    # Each node has one GPU, which no other node has.
    assert len(nodes) == devices and all(gpu in "456789" for gpu in nodes), done.stdout
