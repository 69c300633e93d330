"""A host that drops off the network: no connection closes, and no data arrives.

The host is an emulated one, a network namespace, which needs root.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import MARK
from faults import trainers
from hosts import LOCAL, NAME, REMOTE
from standalone import StandaloneCluster, WorkerHost
from waiting import wait_until

HERE = Path(__file__).resolve().parent
HEARTBEAT_S = 10
SNAPSHOT = 20

# Trains once per line of input, and prints each event.
PROGRAM = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import conftest
from hearth.spark import session as spark_session
from hearth.caffeonspark import CaffeOnSpark, DataSource

spark = spark_session.start("lost host", executors=2, master=sys.argv[2])
digits = conftest.Digits(Path(sys.argv[3]))
settings = {"max_iter": 400, "snapshot": int(sys.argv[4]), "random_seed": 5}

def train():
    solver = digits.solver("cos", **settings)
    source = DataSource(spark).getSource(digits.config(spark, solver, clusterSize="2"), True)
    CaffeOnSpark(spark, on_event=lambda event: print(json.dumps(event), flush=True)).train(source)

for _ in sys.stdin:
    train()
"""


class Driver:
    """The process of PROGRAM, and its events with their arrival times."""

    def __init__(self, url, folder):
        command = [sys.executable, "-c", PROGRAM, str(HERE), url, str(folder), str(SNAPSHOT)]
        self._log = folder / "driver.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.events = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self.events.append((time.monotonic(), json.loads(line)))

    def train(self):
        self.events = []
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def of(self, kind):
        return [(at, event) for at, event in list(self.events) if event["event"] == kind]

    def iterations(self):
        return [event["iteration"] for _, event in self.of("progress")]

    def wait_for(self, kind, timeout_s=180):
        """The first event of this kind; fails with the driver's output if none arrives."""
        found = wait_until(lambda: self.of(kind), timeout_s)
        assert found, self._log.read_text()[-3000:]
        return found[0]

    def story(self):
        """Warnings and the driver's log, for a failed test's message."""
        said = [(at, event) for at, event in self.events if event.get("level") != "I"]
        return f"{said}\n{self._log.read_text()[-3000:]}"

    def close(self):
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._reader.join()


@pytest.fixture
def driver(remote, tmp_path):
    """A driver of ranks on both hosts; the local host has a spare Worker."""
    os.environ.update([MARK.split("=")])
    hosts = [WorkerHost(LOCAL), WorkerHost(REMOTE, remote.prefix)]
    with StandaloneCluster(tmp_path, hosts) as cluster:
        driver = Driver(cluster.url, tmp_path)
        try:
            driver.train()
            driver.wait_for("ready")
            # If two Workers could run an executor, the Master chooses the one with more slots.
            cluster.add_worker(WorkerHost(LOCAL), cores=2)
            yield driver
        finally:
            driver.close()


def cut(remote):
    """Stops all ranks while it cuts the link, so that a fast training does not end first."""
    found = trainers()
    for signal_number in (signal.SIGSTOP, signal.SIGCONT):
        for process in found:
            os.kill(process, signal_number)
        if signal_number == signal.SIGSTOP:
            remote.link("down")


def ranks_at(remote):
    return set(trainers()).intersection(remote.processes())


@pytest.mark.timeout(900)  # a minute and a half on an idle machine
def test_a_training_survives_a_network_pause_and_a_lost_host(driver, remote):
    unbroken = driver.wait_for("done")[1]["weights_sha256"]

    driver.train()
    driver.wait_for("progress")
    cut(remote)
    assert len(ranks_at(remote)) == 1
    time.sleep(HEARTBEAT_S / 2)
    remote.link("up")
    assert driver.wait_for("done")[1]["weights_sha256"] == unbroken
    assert not driver.of("restart")  # a pause shorter than the heartbeat timeout causes no restart

    driver.train()
    assert wait_until(lambda: max([0, *driver.iterations()]) > SNAPSHOT, 60)
    cut(remote)
    lost_at = time.monotonic()
    at, restart = driver.wait_for("restart")
    assert HEARTBEAT_S - 2 < at - lost_at < HEARTBEAT_S + 30
    said = rf"rank [01] on host {NAME} has been silent for {HEARTBEAT_S} s: it is frozen or its net"
    assert re.match(said, restart["reason"])
    # The rank on the lost host ends because it has lost the driver.
    assert wait_until(lambda: not ranks_at(remote), lost_at + HEARTBEAT_S + 30 - time.monotonic())
    at, done = driver.wait_for("done")
    assert at - lost_at < 90  # a third of that on an idle machine
    assert driver.of("ready")[-1][1]["iteration"] >= SNAPSHOT, driver.story()
    assert done["weights_sha256"] == unbroken
    assert len(driver.of("restart")) == 1
