"""Trains on the digits with Caffe on executors in pods, and checks the ports that the run opens."""

from __future__ import annotations

import shutil
import sys
import threading
from collections import defaultdict
from pathlib import Path

import pods
import pytest

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

DIGITS = pods.ROOT / "python" / "hearth" / "demo"
MEMORY_MB = 2048
SHARED = pods.SHARED

# The ports of docs/platforms.md that a NetworkPolicy allows.
PORTS = {
    "spark.driver.port": "7078",
    "spark.driver.blockManager.port": "7079",
    "spark.blockManager.port": "7079",
    "spark.hearth.coordinator.port": "7300-7319",
    "spark.hearth.mesh.port": "7400-7419",
    "spark.hearth.feed.port": "7500-7519",
    "spark.hearth.node.port": "7600-7619",
    "spark.port.maxRetries": "4",
}
DAEMONS = {7077, 6066, 8080, 7070, 8081}  # of Master and Worker, absent on Kubernetes
SECURE = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "a-secret",
    "spark.network.crypto.enabled": "true",
}


def allowed() -> set[int]:
    found = set(DAEMONS)
    for name, text in PORTS.items():
        if name != "spark.port.maxRetries":
            first, _, last = text.partition("-")
            found |= set(range(int(first), int(last or int(first) + 4) + 1))
    return found


class Listening(threading.Thread):
    """Records the ports of all pods until stop()."""

    def __init__(self, made: pods.Pods, count: int) -> None:
        super().__init__(daemon=True)
        self.found: dict[int, set[int]] = defaultdict(set)
        self._made, self._count = made, count
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.02):
            for index in range(-1, self._count):
                self.found[index] |= self._made.listeners(index)

    def stop(self) -> set[int]:
        self._over.set()
        self.join()
        return set().union(*self.found.values())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """(pods with a Master and two Workers, the folder of logs, the driver's settings)."""
    if reason := pods.why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("pods")
    folder.chmod(0o755)
    with pods.Pods(folder, 2, MEMORY_MB) as made:
        options = " ".join(f"-D{key}={value}" for key, value in SECURE.items())
        quick = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={pods.LOCAL} {options}"
        daemon = {"SPARK_DAEMON_JAVA_OPTS": quick, "SPARK_DAEMON_MEMORY": "192m"}
        home = made._environment(-1)["SPARK_HOME"]
        start = [f"{home}/bin/spark-class", "org.apache.spark.deploy"]
        url = f"spark://{made.address(-1)}:7077"

        def launch(index, name, *arguments):
            host = ["--host", made.address(index)]
            command = [start[0], f"{start[1]}.{name}", *host, *arguments]
            made.start(index, command, f"{name.lower()}{index}", **daemon)

        launch(-1, "master.Master", "--port", "7077", "--webui-port", "8080")
        await_words(folder / "master.master-1.log", "I have been elected leader")
        for index in (0, 1):
            work = ["--work-dir", pods.WORK, "--port", "7070", "--webui-port", "8081"]
            launch(index, "worker.Worker", "--cores", "2", "--memory", "1g", *work, url)
        for index in (0, 1):
            await_words(folder / f"worker.worker{index}.log", "Successfully registered")
        conf = {
            "spark.master": url,
            "spark.driver.host": made.address(-1),
            "spark.executor.memory": "512m",
            "spark.executor.cores": "2",
            "spark.task.cpus": "1",
            # Waits for both executors, so that each gets a rank: one alone has slots for both.
            "spark.cores.max": "4",
            "spark.scheduler.minRegisteredResourcesRatio": "1",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
            "spark.ui.enabled": "false",
            "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={pods.LOCAL}",
            "spark.executor.extraJavaOptions": f"-Djava.io.tmpdir={pods.LOCAL}",
            **PORTS,
            **SECURE,
        }
        yield made, folder, conf


def await_words(log: Path, words: str) -> None:
    from waiting import wait_until

    if not wait_until(lambda: log.exists() and words in log.read_text(errors="replace"), 120):
        raise RuntimeError(f"no '{words}' in {log}: {log.read_text(errors='replace')[-3000:]}")


def run(cluster, name: str, *command: str, **more: str) -> set[int]:
    """Runs a program in the driver's pod and the shared folder; returns the ports it opened."""
    made, folder, conf = cluster
    settings = [f"--conf={key}={value}" for key, value in conf.items()]
    submit = " ".join([*settings, "pyspark-shell"])
    listening = Listening(made, 2)
    listening.start()
    process = made.start(
        -1, ["sh", "-c", 'cd "$0" && exec "$@"', SHARED, sys.executable, *command], name,
        PYSPARK_SUBMIT_ARGS=submit, PYTHONPATH=str(pods.ROOT / "python"), **more,
    )  # fmt: skip
    status = process.wait(timeout=500)
    ports = listening.stop()
    log = folder / f"{name}.log"
    assert status == 0, log.read_text(errors="replace")[-6000:]
    return ports


def test_the_digits_are_learnt_by_caffe(cluster):
    from hearth.demo import prepare

    made, folder, conf = cluster
    shared = folder / "shared"
    for file in DIGITS.glob("*.prototxt"):
        shutil.copy(file, shared)
    prepare.write_tables(shared / "work")
    flags = ["-m", "hearth.caffeonspark", "--master", conf["spark.master"]]
    flags += [f"--conf={key}={value}" for key, value in conf.items() if key != "spark.master"]
    train = ["-conf", "lenet_memory_solver.prototxt", "-model", f"file:{SHARED}/lenet.caffemodel"]
    ports = run(cluster, "train", *flags, "-train", *train, "-clusterSize", "2")
    run(cluster, "test", *flags, "-test", *train, "-output", f"file:{SHARED}/means.txt")
    means = dict(line.split(": ") for line in (shared / "means.txt").read_text().splitlines())
    assert float(means["accuracy"].split(",")[0]) > 0.95
    assert ports <= allowed(), sorted(ports - allowed())
    assert "tcp with TLS" in (folder / "train.log").read_text()
    print("peaks", [made.peak_mb(index) for index in (0, 1)], "ports", sorted(ports))
