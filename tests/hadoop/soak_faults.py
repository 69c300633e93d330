"""`make soak-hadoop`: kills that take minutes and must not change a training's model.

pytest does not collect this file by itself. At its end it prints the table in docs/reliability.md.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest
from hadoop_faults import Background, executors, kill_one, masters, reached, trainers
from test_yarn_caffe import submit_cluster
from yarn_programs import content, last_application, names, output_of

from hearth.caffeonspark import CaffeOnSpark, DataSource

ITERATIONS, EVERY = 600, 20
DATA_NODE_S = 20.0
TIMES = 3


class Table:
    """Seconds from each kill to the next complete snapshot in HDFS, by fault."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = defaultdict(list)

    def add(self, fault: str, seconds: float) -> None:
        self._seconds[fault].append(seconds)

    def lines(self) -> Iterator[str]:
        yield "| fault | times | restarts of ranks | seconds to the next snapshot: mean | most |"
        yield "|---|---|---|---|---|"
        for fault, found in self._seconds.items():
            mean, most = sum(found) / len(found), max(found)
            yield f"| {fault} | {len(found)} | {RESTARTS[fault]} | {mean:.1f} | {most:.1f} |"


RESTARTS = {
    "executor's container": 1,
    "trainer": 1,
    "DataNode for 20 s": 0,
    "NameNode in a snapshot": 0,
    "application master": 0,
}


@pytest.fixture(scope="session")
def table():
    gathered = Table()
    yield gathered
    print("", *gathered.lines(), sep="\n", flush=True)


def seals(hadoop, folder: str) -> int:
    return sum(name.endswith(".hearth.json") for name in names(hadoop, folder))


class Training:
    """Trains in the tests' session; run() names the folder in HDFS that the model goes to."""

    def __init__(self, hadoop, spark, digits):
        self._hadoop, self._spark, self._digits = hadoop, spark, digits
        self.solver = digits.solver(max_iter=ITERATIONS, snapshot=EVERY, snapshot_prefix='"lenet"')

    def run(self, folder: str, kill: Callable[[], None] = lambda: None) -> list[dict]:
        """Trains and returns the events; `kill` runs in another thread."""
        events: list[dict] = []
        conf = self._digits.config(self._spark, self.solver, model=f"{folder}/lenet.caffemodel")
        source = DataSource(self._spark).getSource(conf, True)
        with Background(kill):
            CaffeOnSpark(self._spark, events.append).train(source)
        assert seals(self._hadoop, folder) == ITERATIONS // EVERY
        return events

    def model(self, folder: str) -> bytes:
        return content(self._hadoop, f"{folder}/lenet.caffemodel")


@pytest.fixture(scope="module")
def training(hadoop, spark, digits):
    found = Training(hadoop, spark, digits)
    found.run("whole")
    return found


def unsealed(hadoop, folder: str) -> bool:
    """Whether a snapshot is being written."""
    there = names(hadoop, folder)
    states = {name.partition(".")[0] for name in there if name.endswith(".caffemodel")}
    sealed = {name.partition(".")[0] for name in there if name.endswith(".hearth.json")}
    return any(name.startswith(".") for name in there) or bool(states - sealed - {"lenet"})


@pytest.mark.parametrize("time_of", range(TIMES))
@pytest.mark.parametrize("fault", list(RESTARTS)[:4])
def test_a_fault_changes_no_bit_of_the_model(hadoop, spark, training, table, fault, time_of):
    application, folder = spark.sparkContext.applicationId, f"{fault[:4]}{time_of}"

    def kill() -> None:
        reached(lambda: seals(hadoop, folder) > 2 * time_of)
        if fault == "NameNode in a snapshot":
            reached(lambda: unsealed(hadoop, folder))
        before, killed_at = seals(hadoop, folder), time.monotonic()
        if fault == "executor's container":
            kill_one(executors, application)
        elif fault == "trainer":
            kill_one(trainers, application)
        else:
            daemon = fault.partition(" ")[0].lower()
            hadoop.kill_daemon(daemon)
            time.sleep(DATA_NODE_S if daemon == "datanode" else 0)
            hadoop.start_daemon(daemon)
            hadoop.wait_until_ready()
        reached(lambda: seals(hadoop, folder) > before)
        table.add(fault, time.monotonic() - killed_at)

    events = training.run(folder, kill)
    assert len([event for event in events if event["event"] == "restart"]) == RESTARTS[fault]
    assert training.model(folder) == training.model("whole")


def test_an_application_master_that_dies_is_started_again(hadoop, digits, training, table):
    known = {app["id"] for app in hadoop.cluster("apps")["apps"]["app"]}

    def kill() -> None:
        reached(lambda: seals(hadoop, "master") > 2)
        (application,) = {app["id"] for app in hadoop.cluster("apps")["apps"]["app"]} - known
        before, killed_at = seals(hadoop, "master"), time.monotonic()
        kill_one(masters, application)
        # Awaits three more, because seals of the first attempt may still arrive.
        reached(lambda: seals(hadoop, "master") > before + 2)
        table.add("application master", time.monotonic() - killed_at)

    with Background(kill):
        done = submit_cluster(
            digits, "-train", "-conf", training.solver, "-clusterSize", "2",
            "-model", "master/lenet.caffemodel", attempts=2,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    application = last_application(hadoop)
    assert application["finalStatus"] == "SUCCEEDED"
    # The nodes' logs become available one after the other.
    resumed = "Restoring previous solver status from"
    reached(lambda: resumed in output_of(hadoop, application["id"]))
    assert output_of(hadoop, application["id"]).count("attempt 2 of this application") == 1
    assert seals(hadoop, "master") == ITERATIONS // EVERY
    assert training.model("master") == training.model("whole")
