"""predict(devices=) when an executor is lost in the middle of a job."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from conftest import marked_processes
from faults import is_alive
from pyspark import cloudpickle
from waiting import wait_until

from hearth.ml import predict, release_devices, serving

ROWS, PARTITIONS = 1000, 8
WAIT_S = 100


@pytest.fixture(autouse=True)
def by_value():
    for name in (__name__, "waiting"):
        cloudpickle.register_pickle_by_value(sys.modules[name])
    yield
    release_devices()


def make_double():
    return lambda ids: ids * 2


def in_the_middle(folder: str, batches):
    """Passes the rows on; each task pauses in its first batch until an executor was killed."""
    from pyspark import TaskContext

    from hearth.cluster.task.node_process import executor_pid

    def is_killed() -> bool:
        return os.path.exists(f"{folder}/killed")

    for batch in batches:
        yield batch.slice(0, 60)
        if not is_killed():
            Path(folder, f"{executor_pid()}-{TaskContext.get().partitionId()}").touch()
            assert wait_until(is_killed, WAIT_S), "no executor was killed"
        yield batch.slice(60)


def computed(frame) -> None:
    found = predict(frame, make_double, "id", "y bigint", 20, devices=1).collect()
    assert [(row.id, row.y) for row in found] == [(n, 2 * n) for n in range(ROWS)]


@pytest.mark.parametrize("lost", ["of tasks alone", "of the node"])
def test_a_job_that_loses_an_executor_gives_each_row_once_or_one_error(spark, tmp_path, lost):
    frame = spark.range(0, ROWS, 1, PARTITIONS)
    computed(frame)  # starts the node
    (cluster,) = serving._clusters.values()
    of_node = cluster.nodes[0]["executor_pid"]
    executors = set(marked_processes("CoarseGrainedExecutorBackend"))
    assert of_node in executors and len(executors) == 2
    victim = of_node if lost == "of the node" else (executors - {of_node}).pop()
    folder = str(tmp_path)
    killed = []

    def kill():
        wait_until(lambda: all(list(tmp_path.glob(f"{pid}-*")) for pid in executors), WAIT_S)
        os.kill(victim, signal.SIGKILL)
        killed.append(wait_until(lambda: not is_alive(victim), 30))
        Path(folder, "killed").touch()

    killer = threading.Thread(target=kill)
    killer.start()
    rows = frame.mapInArrow(lambda batches: in_the_middle(folder, batches), "id bigint")
    try:
        if lost == "of the node":
            why = "has ended .*: its executor was lost, |went away, and so did its executor"
            words = rf"worker:0 on host \S+ ({why})"
            with pytest.raises(Exception, match=words):
                computed(rows)
        else:
            computed(rows)
    finally:
        killer.join()
    assert killed == [True]
    computed(frame)  # on the remaining node or on a new one
