"""Clusters with dynamic allocation: their executors are requested, and kept while nodes run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hearth import HearthError
from hearth.spark import dynamic_allocation

CACHED = "spark.dynamicAllocation.cachedExecutorIdleTimeout"

# Of three executors, Spark releases the one without a node. Then the nodes are fed.
PROGRAM = """
import time
from hearth import cluster
from hearth.spark import session

def main(arguments, ctx):
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        feed.next_batch(8)

spark = session.start("allocates", executors=3, conf={
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.initialExecutors": "0",
    "spark.scheduler.minRegisteredResourcesRatio": "0.0",
})
sc = spark.sparkContext

def executors():
    return sc._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver is among them

def wait_until(ready, limit_s=300):
    until = time.monotonic() + limit_s
    while not ready():
        assert time.monotonic() < until, executors()
        time.sleep(0.05)

print("at first", executors())
with cluster.run(spark, main, None, nodes=2) as nodes:
    asked = sc.parallelize(range(3), 3).map(lambda _: time.sleep(1)).count  # for a third one
    wait_until(lambda: asked() and executors() == 3)
    wait_until(lambda: executors() == 2)
    time.sleep(3)
    print("with nodes", executors())
    nodes.train(spark.range(100), epochs=1)
wait_until(lambda: executors() == 0)
print("afterwards", executors())
"""


@pytest.mark.timeout(900)  # half a minute on an idle machine
def test_executors_of_nodes_stay_and_go_with_them(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=850
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.splitlines() == ["at first 0", "with nodes 2", "afterwards 0"]


ON = {dynamic_allocation.SETTING: "TRUE"}


@pytest.mark.parametrize(
    ("settings", "can_keep", "said"),
    [
        (ON, False, "Spark Connect cannot hold .* start its server with .*enabled=false"),
        (ON | {CACHED: "60s"}, True, f"{CACHED}=60s, so Spark would end nodes .* unset .*"),
    ],
)
def test_executors_that_cannot_be_held_are_refused(settings, can_keep, said):
    with pytest.raises(HearthError, match=said):
        dynamic_allocation.refuse_for_nodes(settings.get, can_keep)


def test_trainings_without_dynamic_allocation_are_accepted():
    dynamic_allocation.refuse_for_nodes({CACHED: "60s"}.get, False)
    dynamic_allocation.refuse_for_nodes(ON.get, True)
    dynamic_allocation.refuse_for_ranks({}.get)
