"""Containers like those of Kubernetes on one machine: private network, process ids, mounts and
memory, a read-only root, 64 MB of /dev/shm, a random user without a home. Needs root.

The user has a line in /etc/passwd, as from a mounted file: without it Spark's encryption and
Hadoop's login fail ("Invalid UID, could not determine effective user").

Each pod is a host of tests/hosts/emulated_hosts.py. Pods reach each other only by address, because
a pod resolves only its own name, as without a Kubernetes service.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "hosts"))
import emulated_hosts

ROOT = Path(__file__).resolve().parents[2]
USER = 1000680000  # in the range that OpenShift assigns
# A pod's writable folders: an emptyDir for Spark's local folders, one for its work, and a volume
# that all pods share.
LOCAL, WORK, SHARED = "/mnt/local", "/mnt/work", "/mnt/shared"
_LISTEN = "0A"

_SETUP = """set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 none /mnt
mkdir -m 777 /mnt/local /mnt/work /mnt/shared
mount --bind "$1" /mnt/shared
mount -t tmpfs -o size=64m,mode=1777 none /dev/shm
printf '127.0.0.1 localhost\\n%s %s\\n' "$2" "$3" >/mnt/hosts
mount --bind /mnt/hosts /etc/hosts
printf 'root:x:0:0::/root:/bin/sh\\nspark:x:%s:0::/nonexistent:/bin/sh\\n' "$5" >/mnt/passwd
mount --bind /mnt/passwd /etc/passwd
if [ -d "$4/.pyenv" ]; then  # a Python in root's home, which others cannot enter
  mkdir /mnt/python
  mount --bind "$4/.pyenv" /mnt/python
  mount -t tmpfs -o mode=755 none "$4"
  mkdir "$4/.pyenv"
  mount --move /mnt/python "$4/.pyenv"
fi
mount -o remount,bind,ro /
"""


def why_not() -> str:
    """The reason why this machine cannot create pods; empty if it can."""
    return emulated_hosts.why_not()


class Pods:
    """A driver's pod and `count` others; a context manager that kills their processes at the end.

    `memory_mb`: the memory limit of each pod but the driver's, if control groups can be created.
    """

    def __init__(self, folder: Path, count: int, memory_mb: int) -> None:
        self._network = emulated_hosts.Network(count)
        self._groups: list[Path] = []
        self._running: list[subprocess.Popen[bytes]] = []
        self._logs = folder
        shared = folder / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        self._group_of = {index: self._group(index, memory_mb) for index in range(count)}
        for index in range(-1, count):
            host = self._host(index)
            script = ["sh", "-c", _SETUP, "sh", str(shared), self.address(index), host.name]
            done = host.popen([*script, os.path.expanduser("~root"), str(USER)])
            said, _ = done.communicate()
            if done.returncode:
                raise RuntimeError(f"the pod {host.name} could not be made: {said}")

    def address(self, index: int) -> str:
        """The address of pod `index`; -1 is the driver's."""
        return self._network.address(index)

    def start(self, index: int, command: Sequence[str], log: str, **more: str) -> subprocess.Popen:
        """Starts a program in a pod with a container's environment and `more`; logs to LOG.log."""
        host, group = self._host(index), self._group_of.get(index)
        environment = {**self._environment(index), **more}
        words = [f"{key}={value}" for key, value in environment.items()]
        as_user = ["setpriv", f"--reuid={USER}", "--regid=0", "--clear-groups", "env", "-i", *words]
        enter = ["sh", "-c", 'cd "$0" && exec "$@"', WORK, *as_user]
        join = f"echo $$ >{group}/cgroup.procs || exit; " if group else ""
        with open(self._logs / f"{log}.log", "ab") as file:
            process = subprocess.Popen(
                ["sh", "-c", f'{join}exec "$@"', "sh", *host.enter(), *enter, *command],
                stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            )  # fmt: skip
        self._running.append(process)
        return process

    def listeners(self, index: int) -> set[int]:
        """The pod's listening ports that other pods can reach."""
        return {port for port in self._listening(self._host(index).pid)}

    def _listening(self, pid: int) -> Iterator[int]:
        loopback = ("0100007F", "00000000000000000000000001000000")  # address suffixes of loopback
        for kind in ("tcp", "tcp6"):
            lines = Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]
            for line in lines:
                address, port = line.split()[1].split(":")
                if line.split()[3] == _LISTEN and not address.endswith(loopback):
                    yield int(port, 16)

    def peak_mb(self, index: int) -> int | None:
        """The peak memory of a pod; None without a control group."""
        group = self._group_of.get(index)
        for name in ("memory.peak", "memory.max_usage_in_bytes"):
            if group and (group / name).exists():
                return int((group / name).read_text()) >> 20
        return None

    def _host(self, index: int) -> emulated_hosts.Host:
        return self._network.driver if index < 0 else self._network.hosts[index]

    def _environment(self, index: int) -> dict[str, str]:
        """The environment in Spark's image: no USER, no TMPDIR, and the home of a user without an
        entry.
        """
        import pyspark

        kept = ("JAVA_HOME", "HEARTH_NATIVE_DIR")
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": "/nonexistent",
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": self.address(index),
            "SPARK_LOCAL_DIRS": LOCAL,
            "SPARK_USER": "spark",
            "PYSPARK_PYTHON": sys.executable,
            **{name: os.environ[name] for name in kept if name in os.environ},
        }

    def _group(self, index: int, memory_mb: int) -> Path | None:
        """A control group with this limit; None if this machine does not allow creating one."""
        for base, limit in (
            (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
            (Path("/sys/fs/cgroup"), "memory.max"),
        ):
            group = base / f"hearth-pod-{os.getpid()}-{index}"
            try:
                group.mkdir()
                self._groups.append(group)
                (group / limit).write_text(str(memory_mb << 20))
                return group
            except OSError:
                continue
        return None

    def close(self) -> None:
        """Kills all processes in the pods. Idempotent."""
        self._network.close()
        for process in self._running:
            process.wait(timeout=30)
        for group in self._groups:
            group.rmdir()
        self._groups, self._running = [], []

    def __enter__(self) -> Pods:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()
