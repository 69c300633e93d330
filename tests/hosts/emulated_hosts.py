"""Emulated hosts on one machine: namespaces that shaped links connect to a switch.

A host has a private network, process ids and name, like a container. Therefore ranks of two hosts
cannot share memory, and this machine's network is not changed. Needs root.

    driver ──┐
    host 0 ──┤ switch (a bridge; rates by tc tbf, delay and loss by line.py)
    host 1 ──┘

The hosts and all their processes end when the pytest process that created them ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_HERE = Path(__file__).resolve().parent
_TOOLS = ("ip", "tc", "unshare", "nsenter")


def why_not() -> str:
    """The reason why this machine cannot create hosts; empty if it can."""
    if os.geteuid() != 0:
        return "namespaces need root"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not found (Debian: iproute2, util-linux)"
    tried = subprocess.run(["unshare", "--net", "--pid", "--fork", "true"], capture_output=True)
    return "" if tried.returncode == 0 else f"unshare: {tried.stderr.decode().strip()}"


@dataclass(frozen=True)
class Link:
    """The links between hosts and switch. The driver's link has no limit.

    rate: of each direction, in tc's notation ("1gbit"); empty: as fast as this machine copies.
    delay_s: from host to host in each direction, so a round trip takes twice as long.
    loss: the fraction of a host's packets that are lost.
    """

    rate: str = ""
    delay_s: float = 0.0
    loss: float = 0.0


class Host:
    """A host: namespaces that exist until close(), held by a process."""

    def __init__(self, name: str) -> None:
        self.name = name
        # The holder ends when its input ends. As the namespace's first process, its end kills all
        # others.
        script = 'hostname "$0"; ip link set lo up; echo ready; exec cat'
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--pid", "--uts", "--ipc", "--mount-proc", "--fork",
             "--kill-child", "sh", "-c", script, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        if self._holder.stdout.readline() != "ready\n":
            raise RuntimeError(f"the host {name} could not be made")

    @property
    def pid(self) -> int:
        """Id of a process in the host's network."""
        return self._holder.pid

    def popen(self, command: Sequence[str], **options: object) -> subprocess.Popen[str]:
        """Starts a program on the host, with text pipes for its input and output."""
        return subprocess.Popen(
            [*self.enter(), *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options,
        )  # fmt: skip

    def enter(self) -> list[str]:
        """The command prefix that makes a command run on the host."""
        pid = f"--pid=/proc/{self.pid}/ns/pid_for_children"
        return [*self._enter("--uts", "--ipc", "--mount"), pid]

    def ip(self, *lines: str) -> None:
        """Runs commands of `ip` in the host's network."""
        self._run(["ip", "-batch", "-"], "".join(f"{line}\n" for line in lines))

    def shape(self, device: str, rate: str) -> None:
        """Limits the rate at which the device sends; its queue holds 5 ms, like a switch's."""
        tbf = ["tbf", "rate", rate, "burst", "256kb", "latency", "5ms"]
        self._run(["tc", "qdisc", "add", "dev", device, "root", *tbf])

    def close(self) -> None:
        """Kills all processes on the host, and removes the host."""
        self._holder.stdin.close()
        self._holder.wait(timeout=10)

    def _enter(self, *namespaces: str) -> list[str]:
        return ["nsenter", "--target", str(self.pid), "--net", *namespaces]

    def _run(self, command: list[str], text: str = "") -> None:
        done = subprocess.run(
            [*self._enter(), *command], input=text, text=True, capture_output=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: {' '.join(command)}: {done.stderr}{text}")


def _hardware(index: int) -> str:
    return f"02:77:00:00:00:{index + 1:02x}"


class Network:
    """A switch that connects a driver and `count` hosts, whose links are all equal."""

    def __init__(self, count: int, link: Link | None = None) -> None:
        self._count = count
        self._link = link or Link()
        self._line: subprocess.Popen[str] | None = None
        self.hosts: list[Host] = []
        self._switch = Host("switch")
        try:
            self._switch.ip("link add br0 type bridge", "link set br0 up")
            self.driver = self._add_host("driver", -1, Link())
            self.hosts = [self._add_host(f"host{i}", i, self._link) for i in range(count)]
            if self._is_long:
                self._start_line()
        except BaseException:
            self.close()
            raise

    def address(self, index: int, version: int = 4) -> str:
        """The address of host `index`; -1 is the driver."""
        return f"10.77.0.{index + 2}" if version == 4 else f"fd77::{index + 2:x}"

    def set_link(self, index: int, up: bool) -> None:
        """Disconnects or reconnects host `index`; while disconnected, its packets are dropped."""
        self._switch.ip(f"link set to-host{index} {'up' if up else 'down'}")

    def close(self) -> None:
        """Removes the hosts and kills all their processes. Idempotent."""
        for host in [*self.hosts, *([self.driver] if hasattr(self, "driver") else [])]:
            host.close()
        self.hosts = []
        self._switch.close()

    def __enter__(self) -> Network:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _is_long(self) -> bool:
        return self._link.delay_s > 0 or self._link.loss > 0

    def _add_host(self, name: str, index: int, link: Link) -> Host:
        host = Host(name)
        port = f"to-{name}"
        long = self._is_long and index >= 0
        # On a long link, each frame is a single packet, so that packets are lost one by one.
        segments = "gso_max_segs 1" if long else ""
        peer = f"name eth0 address {_hardware(index)} {segments} netns {host.pid}"
        self._switch.ip(
            f"link add {port} type veth peer {peer}",
            *([] if long else [f"link set {port} master br0"]),
            f"link set {port} up",
        )
        if long:
            self._switch.ip(
                f"link add in-{name} type veth peer name br-{name}",
                f"link set br-{name} master br0",
                f"link set in-{name} up",
                f"link set br-{name} up",
            )
        host.ip(
            f"addr add {self.address(index)}/24 dev eth0",
            f"addr add {self.address(index, 6)}/64 dev eth0 nodad",
            "link set eth0 up",
            # Static entries, because all namespaces share a kernel table of ARP results that 33
            # hosts overflow.
            *(
                f"neigh add {self.address(other)} lladdr {_hardware(other)} dev eth0"
                for other in range(-1, self._count)
                if other != index
            ),
        )
        if link.rate:
            host.shape("eth0", link.rate)
            self._switch.shape(port, link.rate)
        return host

    def _start_line(self) -> None:
        pairs = [f"to-{host.name}=in-{host.name}" for host in self.hosts]
        options = [str(self._link.delay_s), str(self._link.loss)]
        self._line = self._switch.popen([sys.executable, str(_HERE / "line.py"), *options, *pairs])
        if self._line.stdout.readline() != "ready\n":
            raise RuntimeError("the long line did not start")
