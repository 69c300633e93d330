"""A Hadoop cluster on this machine: NameNode, DataNode, ResourceManager and two NodeManagers."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any

import hadoop_conf
from hadoop_conf import HOST
from hadoop_jars import jars

_READY_S = 300.0
_NODES = 2
_QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_OPENED = ("java.lang", "java.util", "java.util.concurrent")
_SERVER = "org.apache.hadoop.yarn.server"
_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
# {name: (main class, folder of settings, heap)}
_DAEMONS = {
    "namenode": (_NAMENODE, "conf-daemons", "256m"),
    "datanode": ("org.apache.hadoop.hdfs.server.datanode.DataNode", "conf-daemons", "192m"),
    "resourcemanager": (f"{_SERVER}.resourcemanager.ResourceManager", "conf-daemons", "384m"),
    **{
        f"node{number}": (f"{_SERVER}.nodemanager.NodeManager", f"conf-node{number}", "192m")
        for number in range(_NODES)
    },
}
# {program: {its first argument: main class}}, as in Hadoop's scripts.
_PROGRAMS = {
    "hadoop": {"fs": "org.apache.hadoop.fs.FsShell"},
    "hdfs": {
        "dfs": "org.apache.hadoop.fs.FsShell",
        "dfsadmin": "org.apache.hadoop.hdfs.tools.DFSAdmin",
        "fetchdt": "org.apache.hadoop.hdfs.tools.DelegationTokenFetcher",
        "fsck": "org.apache.hadoop.hdfs.tools.DFSck",
    },
    "yarn": {
        "application": "org.apache.hadoop.yarn.client.cli.ApplicationCLI",
        "node": "org.apache.hadoop.yarn.client.cli.NodeCLI",
        "logs": "org.apache.hadoop.yarn.client.cli.LogsCLI",
    },
}


class HadoopCluster:
    """A context manager. However this process ends, the cluster ends with it.

    The cluster's folder is deleted, too. HDFS's superuser is `hdfs`; this process's user has a home
    folder in it. Not for two threads.

    Attributes:
        uri: of the file system, "hdfs://host:port".
        webhdfs: the same over HTTP, "http://host:port/webhdfs/v1".
        yarn: the ResourceManager's pages and REST interface, "http://host:port".
        folder: settings, logs and data of the daemons.
        user: who this process is to HDFS.
    """

    def __init__(self, keep: bool = False):
        """`keep`: do not delete the folder, so that its logs can be read."""
        self.folder = Path(tempfile.mkdtemp(prefix="hearth-hadoop-"))
        self.user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        self._keep = keep
        self._ports = hadoop_conf.Ports()
        self.uri = f"hdfs://{HOST}:{self._ports.namenode}"
        self.webhdfs = f"http://{HOST}:{self._ports.webhdfs}/webhdfs/v1"
        self.yarn = f"http://{HOST}:{self._ports.yarn_web}"
        self._java = _java_home()
        self._jars = jars()
        self._keeper: subprocess.Popen[str] | None = None
        self._pids: dict[str, int] = {}

    @property
    def java_options(self) -> list[str]:
        """JVM options for every program that uses the cluster."""
        return []

    def start(self) -> HadoopCluster:
        """Starts all daemons at the same time; returns when all of them are ready.

        Raises:
            RuntimeError: one ended, or they were not ready in time; with the end of its log.
        """
        hadoop_conf.write_all(self.folder, self._ports, _NODES, self._settings())
        for name in ("tmp", "log", "bin"):
            (self.folder / name).mkdir()
        self._write_programs()
        keeper = Path(__file__).with_name("hadoop_keeper.py")
        self._keeper = subprocess.Popen(
            [sys.executable, str(keeper), str(self.folder), str(int(self._keep))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            self._before_daemons()
            for name in _DAEMONS:
                self.start_daemon(name)
            self.wait_until_ready()
            self._make_folders()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Kills the processes that the cluster started and their descendants."""
        if self._keeper is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        assert self._keeper.stdin is not None and self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._keeper.stdout.close()
        self._keeper.wait()

    def start_daemon(self, name: str) -> None:
        """Starts (or restarts) namenode, datanode, resourcemanager, node0 or node1; does not wait.

        A NameNode without an image first creates one.
        """
        main, conf, heap = _DAEMONS[name]
        java = self._java_command(self.folder / conf, f"-Xmx{heap}")
        environment = {
            **os.environ,
            "JAVA_HOME": str(self._java),
            "HADOOP_CONF_DIR": str(self.folder / conf),
        }
        environment.pop("HADOOP_USER_NAME", None)
        if name in ("namenode", "datanode"):
            environment["HADOOP_USER_NAME"] = "hdfs"
        command = [*java, main]
        if name == "namenode" and not (self.folder / "namenode").exists():
            script = '"$@" -format -nonInteractive && exec "$@"'
            command = ["sh", "-c", script, "sh", *command]
        self._spawn(name, command, environment)

    def _spawn(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        """Starts a process that the cluster's end kills."""
        order = {"command": command, "environment": environment, "log": str(self.log(name))}
        assert self._keeper and self._keeper.stdin and self._keeper.stdout
        self._keeper.stdin.write(json.dumps(order) + "\n")
        self._keeper.stdin.flush()
        self._pids[name] = int(self._keeper.stdout.readline())

    def kill_daemon(self, name: str) -> None:
        """Kills a daemon; returns when it has ended."""
        os.kill(self._pids[name], signal.SIGKILL)
        _wait(lambda: not _runs(self._pids[name]), 30.0)

    def log(self, name: str) -> Path:
        return self.folder / "log" / f"{name}.log"

    def wait_until_ready(self) -> None:
        """Returns when the DataNode and the NodeManagers are in service, and HDFS is writable.

        Raises:
            RuntimeError: as start() says.
        """
        for ready in (self._hdfs_ready, self._yarn_ready):
            _wait(lambda ready=ready: self._none_ended() and ready(), _READY_S)
            if not ready():
                raise RuntimeError(f"Hadoop is not ready after {_READY_S:.0f} s:\n{self._ends()}")

    def environment(self) -> dict[str, str]:
        """Environment variables that programs need to use this cluster."""
        return {
            "HADOOP_CONF_DIR": str(self.folder / "conf"),
            "YARN_CONF_DIR": str(self.folder / "conf"),
            "JAVA_HOME": str(self._java),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
        }

    def run(self, *command: str, user: str | None = None) -> str:
        """Runs a command like `hdfs dfs -ls /`, as `user` if given; returns its output.

        Raises:
            RuntimeError: its status is not 0; with what it said.
        """
        who = self._who(user) if user else {}
        environment = {**os.environ, **self.environment(), **who}
        program = str(self.folder / "bin" / command[0])
        done = subprocess.run(
            [program, *command[1:]], env=environment, capture_output=True, text=True, timeout=120
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def web(self, method: str, path: str, operation: str, **options: str) -> Any:
        """Makes a WebHDFS request without a body; returns the response's JSON. `user`: the
        requesting user, by default `hdfs`.

        Raises:
            urllib.error.HTTPError: HDFS refused it.
        """
        user = options.pop("user", "hdfs")
        query = "&".join(f"{key}={value}" for key, value in options.items())
        url = f"{self.webhdfs}{path}?op={operation}&user.name={user}&{query}"
        request = urllib.request.Request(url, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or "null")

    def cluster(self, path: str) -> Any:
        """The ResourceManager's REST response for `path` ("apps", "metrics")."""
        url = f"{self.yarn}/ws/v1/cluster/{path}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.loads(answer.read())

    def _settings(self) -> dict[str, dict[str, str]]:
        """Settings in addition to hadoop_conf's, by file ("core-site")."""
        return {}

    def _before_daemons(self) -> None:
        """Starts the services that the daemons need."""

    def _who(self, user: str) -> dict[str, str]:
        """Environment variables that make a program this user in HDFS."""
        return {"HADOOP_USER_NAME": user}

    def _java_command(self, conf: Path, *options: str) -> list[str]:
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        return [
            str(self._java / "bin" / "java"),
            *_QUICK_JVM,
            *opens,
            "-Djava.net.preferIPv4Stack=true",
            *self.java_options,
            f"-Djava.io.tmpdir={self.folder / 'tmp'}",
            *options,
            "-cp",
            f"{conf}:{self._jars}/*",
        ]

    def _write_programs(self) -> None:
        java = " ".join(self._java_command(self.folder / "conf", "-Xmx256m"))
        for program, classes in _PROGRAMS.items():
            cases = [
                f'  {word}) shift; exec {java} {name} "$@" ;;' for word, name in classes.items()
            ]
            cases.append(f'  classpath) echo "{self.folder}/conf:{self._jars}/*" ;;')
            words = "|".join(classes)
            cases.append(f'  *) echo "usage: {program} {words}|classpath ..." >&2; exit 2 ;;')
            text = "\n".join(["#!/bin/sh", 'case "$1" in', *cases, "esac", ""])
            path = self.folder / "bin" / program
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)

    def _hdfs_ready(self) -> bool:
        system = self._bean("FSNamesystem")
        if system.get("NumLiveDataNodes") != 1:
            return False
        return self._bean("NameNodeInfo").get("Safemode") == ""  # a message while in safe mode

    def _bean(self, name: str) -> dict[str, Any]:
        query = f"Hadoop:service=NameNode,name={name}"
        url = f"http://{HOST}:{self._ports.webhdfs}/jmx?qry={query}"
        try:
            beans = json.loads(self._read(url))["beans"]
        except (OSError, ValueError, HTTPException):
            return {}
        return beans[0] if beans else {}

    def _read(self, url: str) -> bytes:
        """The content of one of the HDFS daemons' pages."""
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bytes(answer.read())

    def _yarn_ready(self) -> bool:
        try:
            return self.cluster("metrics")["clusterMetrics"]["activeNodes"] == _NODES
        except (OSError, ValueError, HTTPException):
            return False

    def _none_ended(self) -> bool:
        for name, pid in self._pids.items():
            if not _runs(pid):
                raise RuntimeError(f"the {name} has ended:\n{self._end_of(name)}")
        return True

    def _ends(self) -> str:
        return "\n".join(self._end_of(name) for name in self._pids)

    def _end_of(self, name: str) -> str:
        return f"{name}: {self.log(name).read_text(errors='replace')[-1500:]}"

    def _make_folders(self) -> None:
        self.web("PUT", "/tmp", "MKDIRS", permission="1777")
        home = f"/user/{self.user}"
        self.web("PUT", home, "MKDIRS", permission="755")
        self.web("PUT", home, "SETOWNER", owner=self.user)

    def __enter__(self) -> HadoopCluster:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _java_home() -> Path:
    named = os.environ.get("JAVA_HOME")
    found = shutil.which("java")
    if named is None and found is None:
        raise RuntimeError("Hadoop needs Java: set JAVA_HOME, or put java on PATH")
    return Path(named) if named else Path(os.path.realpath(str(found))).parents[1]


def _runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def _wait(state: Callable[[], bool], limit_s: float) -> None:
    """Returns when `state` is true or `limit_s` has passed."""
    deadline = time.monotonic() + limit_s
    while not state() and time.monotonic() < deadline:
        time.sleep(0.1)
