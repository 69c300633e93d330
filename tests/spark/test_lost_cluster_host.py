"""A node's host drops off the network: the cluster restarts on other hosts and loses no row."""

import os
import re
import subprocess
import sys

import pytest
from conftest import MARK
from hosts import LOCAL, NAME, REMOTE
from standalone import StandaloneCluster, WorkerHost
from waiting import wait_until

HEARTBEAT_S = 10
ROWS = 600

# Each node writes the rows that it receives, and commits them. The last line is the number of
# restarts.
PROGRAM = """
import os, sys, threading, time
from hearth import cluster
from hearth.spark import session as spark_session

def main(folder, ctx):
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        rows = feed.next_batch(5)
        with open(f"{folder}/{ctx.restart_count}-{ctx.index}", "a") as file:
            file.write("".join(f"{row[0]}\\n" for row in rows))
        feed.commit()
        while not os.path.exists(f"{folder}/cut"):
            time.sleep(0.05)

spark = spark_session.start("lost host", executors=2, master=sys.argv[1])
dropped = [spark.sparkContext._jsc.broadcast("what each executor is to forget")]

def drop():  # Spark's cleaner asks the lost host, too, and the session's end waits for the cleaner
    while not os.path.exists(f"{sys.argv[2]}/cut"):
        time.sleep(0.05)
    dropped.clear()
    for _ in range(3):
        spark._jvm.System.gc()
        time.sleep(1)

threading.Thread(target=drop, daemon=True).start()
with cluster.run(spark, main, sys.argv[2], nodes=2, restart=True, timeout_s=100) as nodes:
    for node in nodes.nodes:
        print(node["host_name"], flush=True)
    nodes.train(spark.range(0, int(sys.argv[3]), 1, 8))
print(nodes.restarts.count, flush=True)
"""


def rows_of(folder, start):
    files = folder.glob(f"{start}-*")
    return [int(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.timeout(600)  # a minute on an idle machine
def test_a_cluster_survives_the_loss_of_a_host(remote, tmp_path):
    os.environ.update([MARK.split("=")])
    folder, log = tmp_path / "rows", tmp_path / "driver.log"
    folder.mkdir()
    hosts = [WorkerHost(LOCAL), WorkerHost(REMOTE, remote.prefix)]
    with StandaloneCluster(tmp_path, hosts) as cluster:
        command = [sys.executable, "-c", PROGRAM, cluster.url, str(folder), str(ROWS)]
        with log.open("w") as errors:
            driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            hosts = {driver.stdout.readline().strip() for _ in range(2)}
            assert NAME in hosts and len(hosts) == 2, log.read_text()[-3000:]
            assert wait_until(lambda: len(list(folder.glob("0-*"))) == 2, 60)
            cluster.add_worker(WorkerHost(LOCAL), cores=2)
            remote.link("down")
            (folder / "cut").touch()
            # 15 s on an idle machine; Spark itself would notice only after 120 s.
            assert wait_until(lambda: list(folder.glob("1-*")), 100), log.read_text()[-3000:]
            said, _ = driver.communicate(timeout=90)
        finally:
            driver.kill()
            driver.wait()
    text = log.read_text()
    assert (driver.returncode, said) == (0, "1\n"), text[-3000:]
    assert re.search(rf"worker:\d on host {NAME} has been silent for {HEARTBEAT_S} s", text), text
    assert set(rows_of(folder, 0)) | set(rows_of(folder, 1)) == set(range(ROWS))
