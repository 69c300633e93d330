"""Only ranks and nodes hold GPUs, by stage-level scheduling; a script simulates GPUs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from pyspark.resource import ResourceProfile, TaskResourceRequests

from hearth import HearthError
from hearth.spark.profiles import CPUS, GPUS, task_profile

# Starts two executors of three cores and two GPUs each.
PROGRAM = """
import json, os, threading, time
from pathlib import Path
from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests
from hearth import HearthError, cluster
from hearth.spark import session

script = Path("gpus.sh")
script.write_text('''#!/bin/sh
for first in 4 6; do
  if mkdir "$0.$first" 2>/dev/null; then
    printf '{"name": "gpu", "addresses": ["%s", "%s"]}' "$first" "$((first + 1))"
    exit
  fi
done
exit 1
''')
script.chmod(0o755)
found = {}
spark = session.start("profiles", master="local-cluster[2,3,1024]", conf={
    "spark.worker.resource.gpu.amount": "2",
    "spark.worker.resource.gpu.discoveryScript": str(script.resolve()),
    "spark.executor.resource.gpu.amount": "2",
    "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false", "spark.task.cpus": "1",
    "spark.scheduler.mode": "FAIR", "spark.hearth.executorWait": "20s",
})
sc = spark.sparkContext
sc.setLogLevel("ERROR")

def asking(cpus, gpus):
    request = TaskResourceRequests().cpus(cpus).resource("gpu", gpus)
    return ResourceProfileBuilder().require(request).build

def sees(_, ctx):
    return os.environ["CUDA_VISIBLE_DEVICES"]

def takes(_, ctx):
    feed, rows = ctx.get_data_feed(), 0
    while not feed.should_stop():
        rows += len(feed.next_batch(16))
    return os.environ["CUDA_VISIBLE_DEVICES"], rows

def own(ids):
    from pyspark import TaskContext
    return [list(TaskContext.get().resources())]

def run(**options):
    running = cluster.run(spark, sees, None, feeds=(), **options)
    return sorted(running.result())

# One GPU a rank, two, and a half.
found["one"] = run(nodes=4, profile=asking(1, 1))
found["two"] = run(nodes=2, profile=asking(1, 2))
spark.conf.set("spark.hearth.task.resource.gpu.amount", "0.5")
found["half"] = run(nodes=6)
spark.conf.unset("spark.hearth.task.resource.gpu.amount")

# Rows are sent by tasks without GPUs, in a pool of the caller's thread.
sc.setLocalProperty("spark.scheduler.pool", "training")
with cluster.run(spark, takes, None, nodes=2, profile=asking(2, 2)) as nodes:
    found["pool"] = sc._jsc.sc().getPoolForName("training").isDefined()
    nodes.train(sc.parallelize(range(100), 4))
    # The tasks that sent rows have ended once Spark reports it.
    found["held"], until = None, time.monotonic() + 60
    while found["held"] != 2 and time.monotonic() < until:
        held = sc._jsc.sc().statusTracker().getExecutorInfos()
        found["held"] = sum(each.numRunningTasks() for each in held)
        time.sleep(0.1)
    found["others"] = sc.parallelize(range(2), 2).mapPartitions(own).collect()
    gpus, rows = zip(*nodes.result())
found["fed"] = [sorted(gpus), sum(rows)]
sc.setLocalProperty("spark.scheduler.pool", None)

# No slot is left to send rows.
with cluster.run(spark, takes, None, nodes=2, profile=asking(3, 1)) as nodes:
    try:
        nodes.train(sc.parallelize(range(100), 4))
    except cluster.ClusterError as error:
        found["unfed"] = str(error)

# Two at once, with slots for one.
both = [None, None]

def one_of_two(number):
    both[number] = run(nodes=2, profile=asking(2, 2))

threads = [threading.Thread(target=one_of_two, args=(number,)) for number in (0, 1)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
found["both"] = both

# More than any executor has.
try:
    run(nodes=2, profile=asking(1, 3))
except HearthError as error:
    found["three"] = str(error)
Path("found.json").write_text(json.dumps(found))
"""


@pytest.mark.timeout(900)  # three quarters of a minute on an idle machine
def test_nodes_hold_the_resources_of_their_profile(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=850
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["one"] == ["4", "5", "6", "7"]
    assert found["two"] == ["4,5", "6,7"] == found["fed"][0]
    assert sorted(found["half"]) and set(found["half"]) <= set("4567")
    assert max(map(found["half"].count, "4567")) == 2
    assert found["fed"][1] == 100 and found["held"] == 2 and found["others"] == [[], []]
    assert found["pool"]
    assert "the nodes hold 6 of the executors' 6 cores" in found["unfed"]
    assert found["both"] == [["4,5", "6,7"], ["4,5", "6,7"]]
    assert "gpu, amount: 2 needs to be >= the task resource request amount of 3" in found["three"]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({CPUS: "many"}, f"{CPUS}=many: it must be a number"),
        ({CPUS: "0.5"}, f"{CPUS}=0.5: it must be a number"),
        ({GPUS: "0.7"}, f"{GPUS}=0.7: it must be a whole number, or a fraction of a GPU up to 0.5"),
        ({GPUS: "-1"}, f"{GPUS}=-1: "),
    ],
)
def test_invalid_amounts_are_refused(settings, error):
    with pytest.raises(HearthError, match=error):
        task_profile(settings.get)


def test_without_settings_there_is_no_profile():
    given = ResourceProfile()
    assert task_profile({}.get) is None and task_profile({}.get, given) is given


@pytest.mark.parametrize("given", ["gpu", {"gpu": 1}, TaskResourceRequests().cpus(2)])
def test_a_profile_of_a_wrong_type_is_refused(given):
    name = type(given).__name__
    with pytest.raises(TypeError, match=f"profile is a {name}: give a pyspark.resource.Resource"):
        task_profile({}.get, given)
