"""A Spark Master and two Workers of one core each, as processes of this test."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path
from types import TracebackType

from faults import wait_until

_START_S = 60.0


class StandaloneCluster:
    """A context manager; `url` is the master's. Its processes end with it."""

    def __init__(self, folder: Path):
        """`folder`: for logs and the executors' work; kept until the cluster has ended."""
        import pyspark

        self._folder = folder
        self._home = Path(pyspark.__file__).parent
        self._processes: list[subprocess.Popen[bytes]] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.url = f"spark://127.0.0.1:{self._port}"

    def __enter__(self) -> StandaloneCluster:
        # These reach the driver of this process, too: each executor is to hold one rank.
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["PYSPARK_SUBMIT_ARGS"] = (
            "--conf spark.executor.memory=512m --conf spark.executor.cores=1 "
            "--conf spark.cores.max=2 --conf spark.driver.host=127.0.0.1 pyspark-shell"
        )
        master = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0"]
        self._start("master.Master", *master)
        self._await("master.Master", "I have been elected leader")
        for i in range(2):
            work = str(self._folder / f"work{i}")
            memory = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", work]
            self._start("worker.Worker", *memory, self.url, log=f"worker{i}")
        for i in range(2):
            self._await(f"worker{i}", "Successfully registered with master")
        return self

    def _start(self, name: str, *arguments: str, log: str = "") -> None:
        program = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        environment = {
            **os.environ,
            "SPARK_HOME": str(self._home),
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with open(self._folder / f"{log or name}.log", "wb") as file:
            self._processes.append(
                subprocess.Popen(
                    [*program, *arguments],
                    env=environment,
                    stdout=file,
                    stderr=file,
                    start_new_session=True,
                )
            )

    def _await(self, log: str, words: str) -> None:
        path = self._folder / f"{log}.log"
        if not wait_until(lambda: words in path.read_text(errors="replace"), _START_S):
            raise RuntimeError(f"no '{words}' in {log}: {path.read_text(errors='replace')[-2000:]}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del os.environ["PYSPARK_SUBMIT_ARGS"]
        for process in reversed(self._processes):
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
