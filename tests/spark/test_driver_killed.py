"""After the driver is killed nothing remains: no processes, sockets, memory or files."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from faults import check_nothing_left, processes_with
from waiting import wait_until

PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
import conftest
from hearth.spark import session as spark_session
from hearth.caffeonspark import CaffeOnSpark, DataSource
spark = spark_session.start("killed", executors=2)
digits = conftest.Digits(Path({folder!r}))
solver = digits.solver("cos", max_iter=1000000, snapshot=10)
conf = digits.config(spark, solver, clusterSize="2")
show = lambda event: print(event["event"], flush=True)
CaffeOnSpark(spark, on_event=show).train(DataSource(spark).getSource(conf, True))
"""


@pytest.fixture
def driver(tmp_path):
    mark = f"KILLED_DRIVER={uuid.uuid4()}"
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    (tmp_path / "files").mkdir()
    name, value = mark.split("=")
    environment = {k: v for k, v in os.environ.items() if k != "SPARK_HOME"}
    environment.update({name: value, "TMPDIR": str(temporary), "SPARK_LOCAL_DIRS": str(temporary)})
    program = PROGRAM.format(tests=str(Path(__file__).parent), folder=str(tmp_path / "files"))
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
    )
    yield process, mark, temporary
    process.kill()
    process.wait()


def test_a_killed_driver_leaves_no_process(driver, tmp_path):
    process, mark, temporary = driver
    shared = set(os.listdir("/dev/shm"))
    assert wait_until(lambda: process.stdout.readline().strip() == "progress", 120)
    assert any("--control-fd" in line for line in processes_with(mark))
    assert list(temporary.glob("hearth*"))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    check_nothing_left(mark, temporary, shared)
    assert not list((tmp_path / "files").rglob("*.tmp"))
