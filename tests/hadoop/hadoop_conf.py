"""The configuration files of the tests' Hadoop: everything on one machine and without security."""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

HOST = "127.0.0.1"
# Below the ephemeral port range, because an outgoing connection could otherwise use one of these
# ports.
_PORTS = range(15000, 32000)
_NODE_MB, _NODE_CORES = 8192, 8

_LOG = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""
_CLIENT_LOG = _LOG.replace("INFO", "WARN").replace("%d{ISO8601} ", "")


_given: set[int] = set()


def free_port() -> int:
    """An unused port of this machine that no earlier call has returned."""
    while True:
        port = random.choice(_PORTS)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        _given.add(port)
        return port


@dataclass(frozen=True)
class Ports:
    """Ports that must be known in advance; DataNode and NodeManagers use ephemeral ports."""

    namenode: int = field(default_factory=free_port)
    webhdfs: int = field(default_factory=free_port)
    scheduler: int = field(default_factory=free_port)
    tracker: int = field(default_factory=free_port)
    client: int = field(default_factory=free_port)
    admin: int = field(default_factory=free_port)
    yarn_web: int = field(default_factory=free_port)


def write_all(
    folder: Path, ports: Ports, nodes: int, more: Mapping[str, Mapping[str, str]]
) -> None:
    """Writes the folders `conf` (clients), `conf-daemons` (HDFS and the ResourceManager), and
    `conf-node0` and so on. `more`: further settings, by file ("core-site").
    """
    yarn = {**_yarn(folder, ports), **more.get("yarn-site", {})}
    sites = {
        "core-site": {**_core(folder, ports), **more.get("core-site", {})},
        "hdfs-site": {**_hdfs(folder, ports), **more.get("hdfs-site", {})},
    }
    _write(folder / "conf", {**sites, "yarn-site": yarn}, _CLIENT_LOG)
    daemons = {**sites, "yarn-site": yarn, "capacity-scheduler": _scheduler()}
    _write(folder / "conf-daemons", daemons, _LOG)
    # HDFS searches the class path for these folders, which no jar contains. Empty ones are enough.
    for name in ("hdfs", "datanode"):
        (folder / "conf-daemons" / "webapps" / name).mkdir(parents=True)
    for number in range(nodes):
        site = {**yarn, **_node(folder / f"node{number}")}
        _write(folder / f"conf-node{number}", {**sites, "yarn-site": site}, _LOG)


def _write(folder: Path, sites: Mapping[str, Mapping[str, str]], log: str) -> None:
    folder.mkdir()
    (folder / "log4j.properties").write_text(log, encoding="utf-8")
    for name, values in sites.items():
        lines = [
            f"<property><name>{key}</name><value>{escape(value)}</value></property>"
            for key, value in values.items()
        ]
        text = "\n".join(["<configuration>", *lines, "</configuration>", ""])
        (folder / f"{name}.xml").write_text(text, encoding="utf-8")


def _core(folder: Path, ports: Ports) -> dict[str, str]:
    return {
        "fs.defaultFS": f"hdfs://{HOST}:{ports.namenode}",
        "hadoop.tmp.dir": str(folder / "tmp"),
    }


def _hdfs(folder: Path, ports: Ports) -> dict[str, str]:
    return {
        "dfs.replication": "1",
        "dfs.namenode.name.dir": f"file://{folder}/namenode",
        "dfs.datanode.data.dir": f"file://{folder}/datanode",
        "dfs.namenode.rpc-address": f"{HOST}:{ports.namenode}",
        "dfs.namenode.http-address": f"{HOST}:{ports.webhdfs}",
        "dfs.datanode.address": f"{HOST}:0",
        "dfs.datanode.http.address": f"{HOST}:0",
        "dfs.datanode.ipc.address": f"{HOST}:0",
        "dfs.datanode.hostname": HOST,
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.permissions.enabled": "true",
        "dfs.webhdfs.enabled": "true",
        "dfs.namenode.safemode.extension": "0",
        "dfs.heartbeat.interval": "1",
        "dfs.namenode.fs-limits.min-block-size": "1024",
        # With a single DataNode, a write pipeline has no replacement for it.
        "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
    }


def _yarn(folder: Path, ports: Ports) -> dict[str, str]:
    return {
        "yarn.resourcemanager.hostname": HOST,
        "yarn.resourcemanager.bind-host": HOST,
        "yarn.resourcemanager.address": f"{HOST}:{ports.client}",
        "yarn.resourcemanager.scheduler.address": f"{HOST}:{ports.scheduler}",
        "yarn.resourcemanager.resource-tracker.address": f"{HOST}:{ports.tracker}",
        "yarn.resourcemanager.admin.address": f"{HOST}:{ports.admin}",
        "yarn.resourcemanager.webapp.address": f"{HOST}:{ports.yarn_web}",
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.log-aggregation-enable": "true",
        "yarn.nodemanager.remote-app-log-dir": "/tmp/logs",
        "yarn.node-attribute.fs-store.root-dir": f"file://{folder}/tmp/attributes",
        "yarn.timeline-service.enabled": "false",
        "yarn.application.classpath": "",
    }


def _scheduler() -> dict[str, str]:
    prefix = "yarn.scheduler.capacity"
    return {
        f"{prefix}.root.queues": "default",
        f"{prefix}.root.default.capacity": "100",
        f"{prefix}.root.default.state": "RUNNING",
        f"{prefix}.maximum-am-resource-percent": "1.0",
    }


def _node(folder: Path) -> dict[str, str]:
    """Hadoop 3.5 checks memory, but kills containers for it only if `memory.enforced` is false."""
    return {
        "yarn.nodemanager.hostname": HOST,
        "yarn.nodemanager.address": f"{HOST}:0",
        "yarn.nodemanager.localizer.address": f"{HOST}:0",
        "yarn.nodemanager.webapp.address": f"{HOST}:0",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "containers"),
        "yarn.nodemanager.resource.memory-mb": str(_NODE_MB),
        "yarn.nodemanager.resource.cpu-vcores": str(_NODE_CORES),
        "yarn.nodemanager.resource.memory.enforced": "false",
        "yarn.nodemanager.pmem-check-enabled": "true",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.container-monitor.interval-ms": "500",
        "yarn.nodemanager.env-whitelist": "JAVA_HOME",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9",
    }
