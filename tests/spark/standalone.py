"""A Spark Master and its Workers, run as child processes of a test."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from waiting import wait_until

_START_S = 180.0

# Each Worker runs this once: the first one gets the GPUs 4 and 5, the next one 6 and 7.
GPU_DISCOVERY = """#!/bin/sh
for first in 4 6 8; do
  if mkdir "$0.$first" 2>/dev/null; then
    printf '{"name": "gpu", "addresses": ["%s", "%s"]}' "$first" "$((first + 1))"
    exit
  fi
done
exit 1
"""


@dataclass(frozen=True)
class WorkerHost:
    """Where a Worker runs: its address, and the prefix of the command that starts it."""

    host: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()


class StandaloneCluster:
    """A context manager that runs the cluster's processes; `url` is the Master's address."""

    def __init__(
        self,
        folder: Path,
        hosts: Sequence[WorkerHost] = (WorkerHost(), WorkerHost()),
        cores: int = 1,
        conf: Mapping[str, str] | None = None,
        daemon_options: str = "",
    ):
        """Starts a Worker on each of `hosts`, with one executor of `cores` slots.

        `folder`: for logs and the executors' files; it must exist until the cluster has ended. The
        Master and the driver use the first host's address. `conf`: settings for the driver in this
        process. `daemon_options`: for the JVMs of the Master and the Workers.
        """
        import pyspark

        self._folder, self._hosts, self._cores = folder, hosts, cores
        self._conf, self._daemon_options = conf or {}, daemon_options
        self._home = Path(pyspark.__file__).parent
        self._processes: list[subprocess.Popen[bytes]] = []
        self._workers = 0
        self._host = hosts[0].host
        self.url = ""

    def __enter__(self) -> StandaloneCluster:
        # The driver in this process also reads these: each executor must hold its ranks.
        conf = {
            "spark.executor.memory": "512m",
            "spark.executor.cores": str(self._cores),
            "spark.cores.max": str(2 * self._cores),
            "spark.driver.host": self._host,
            "spark.ui.enabled": "false",
            **self._conf,
        }
        self._local_ip = os.environ.get("SPARK_LOCAL_IP")  # this process's sessions use it
        os.environ["SPARK_LOCAL_IP"] = self._host
        settings = " ".join(f"--conf {key}={value}" for key, value in conf.items())
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"{settings} pyspark-shell"
        master = ["--host", self._host, "--port", "0", "--webui-port", "0"]
        try:
            self._start("master.Master", WorkerHost(self._host), *master, log="master")
            said = self._await("master", "I have been elected leader")
            self.url = re.search(r"Starting Spark master at (spark://\S+)", said)[1]
            for host in self._hosts:
                self._start_worker(host, self._cores)
            for i in range(self._workers):
                self._await(f"worker{i}", "Successfully registered with master")
        except BaseException:
            self.close()
            raise
        return self

    def add_worker(self, host: WorkerHost, cores: int | None = None) -> None:
        """Adds a Worker to replace a lost one; returns when the Master has registered it.

        `cores`: its slots, if other than the cluster's.
        """
        number = self._start_worker(host, cores or self._cores)
        self._await(f"worker{number}", "Successfully registered with master")

    def _start_worker(self, host: WorkerHost, cores: int) -> int:
        number = self._workers
        self._workers += 1
        size = ["--cores", str(cores), "--memory", "1g", "--webui-port", "0"]
        work = ["--host", host.host, "--work-dir", str(self._folder / f"work{number}")]
        self._start("worker.Worker", host, *size, *work, self.url, log=f"worker{number}")
        return number

    def _start(self, name: str, host: WorkerHost, *arguments: str, log: str) -> None:
        program = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        environment = {
            **os.environ,
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": host.host,
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "SPARK_DAEMON_JAVA_OPTS": (
                f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {self._daemon_options}"
            ),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with open(self._folder / f"{log}.log", "wb") as file:
            self._processes.append(
                subprocess.Popen(
                    [*host.prefix, *program, *arguments],
                    env=environment,
                    stdout=file,
                    stderr=file,
                    start_new_session=True,
                )
            )

    def _await(self, log: str, words: str) -> str:
        """Waits until the log contains `words`; returns the log's text."""
        path = self._folder / f"{log}.log"
        if not wait_until(lambda: words in path.read_text(errors="replace"), _START_S):
            raise RuntimeError(f"no '{words}' in {log}: {path.read_text(errors='replace')[-2000:]}")
        return path.read_text(errors="replace")

    def close(self) -> None:
        """Kills all processes of the cluster."""
        del os.environ["PYSPARK_SUBMIT_ARGS"], os.environ["SPARK_LOCAL_IP"]
        if self._local_ip is not None:
            os.environ["SPARK_LOCAL_IP"] = self._local_ip
        for process in reversed(self._processes):
            os.killpg(process.pid, signal.SIGTERM)
        for process in reversed(self._processes):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
