"""An emulated second host: a network namespace on this host, whose link can be cut."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

# Tests run in parallel, each with an emulated host, so each process has a different network.
_NETWORK = f"10.77.{os.getpid() % 256}"
LOCAL, REMOTE = f"{_NETWORK}.1", f"{_NETWORK}.2"
NAME = "remote-host"
_WAIT_S = 10.0


class RemoteHost:
    """A context manager: an emulated host, a network namespace connected by a veth pair.

    This host has the address LOCAL, the emulated one REMOTE. A command that begins with `prefix`
    runs on the emulated host. The namespace disappears when the last process in it has ended.

    Raises:
        OSError, subprocess.CalledProcessError: it cannot be created, for example without root.
    """

    def __init__(self) -> None:
        self._local, self._remote = (f"hearth{os.getpid() % 10**6}{side}" for side in "ab")
        self._holder: subprocess.Popen[bytes] | None = None

    @property
    def prefix(self) -> tuple[str, ...]:
        assert self._holder is not None
        pid = self._holder.pid
        return ("nsenter", f"--net=/proc/{pid}/ns/net", f"--uts=/proc/{pid}/ns/uts")

    def __enter__(self) -> RemoteHost:
        script = f"hostname {NAME} && echo && exec sleep infinity"
        command = ["unshare", "--net", "--uts", "sh", "-c", script]
        self._holder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            if not self._holder.stdout.readline():
                raise OSError(self._holder.stderr.read().decode(errors="replace").strip())
            self._join()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _join(self) -> None:
        pair = ["type", "veth", "peer", "name", self._remote, "netns", str(self._holder.pid)]
        _run("ip", "link", "add", self._local, *pair)
        _run("ip", "address", "add", f"{LOCAL}/24", "dev", self._local)
        _run("ip", "link", "set", self._local, "up")
        _run(*self.prefix, "ip", "link", "set", "lo", "up")
        _run(*self.prefix, "ip", "address", "add", f"{REMOTE}/24", "dev", self._remote)
        self.link("up")
        deadline = time.monotonic() + _WAIT_S
        while "LOWER_UP" not in _run("ip", "link", "show", self._local):
            if time.monotonic() > deadline:
                raise OSError(f"the link {self._local} does not come up within {_WAIT_S:.0f} s")
            time.sleep(0.01)

    def processes(self) -> list[int]:
        """Ids of all processes on the host, including the one that keeps the namespace alive."""
        home = os.stat(f"/proc/{self._holder.pid}/ns/net").st_ino
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and (entry / "ns" / "net").stat().st_ino == home:
                    found.append(int(entry.name))
        return found

    def link(self, state: str) -> None:
        """Cuts the link ("down") without notifying either side, or restores it ("up")."""
        _run(*self.prefix, "ip", "link", "set", self._remote, state)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        subprocess.run(["ip", "link", "delete", self._local], capture_output=True, check=False)
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._holder.communicate()


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout
