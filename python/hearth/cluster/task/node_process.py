"""Starts a node: a supervisor process, with the user's program as its child.

Both are new Python processes, never forks of Spark's worker. The supervisor outlives the Spark
task if the node does; it ends with the executor, with the driver, or on request.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Any

from hearth.cluster.channel import Channel
from hearth.cluster.errors import NodeError


class NodeProcess:
    """A node's supervisor process, and the Spark task's channel to the supervisor."""

    def __init__(self, job: dict[str, Any], program: bytes):
        """Starts the supervisor; `program` is the pickled (main function, arguments)."""
        ours, theirs = socket.socketpair()
        self.name = job["name"]
        self.channel = Channel(ours)
        job = {**job, "executor_pid": executor_pid(), "sys_path": sys.path, "cwd": os.getcwd()}
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hearth.cluster.node.supervisor", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self.channel.send({"job": job, "bytes": len(program)}, data=program)

    def wait(self, event: str) -> dict[str, Any]:
        """Blocks until the supervisor reports `event`: "started" or "done".

        Raises:
            NodeError: the node failed first.
        """
        while True:
            try:
                message, _ = self.channel.receive()
            except (EOFError, OSError):
                raise NodeError(f"{self.name}: its supervisor process ended") from None
            if "error" in message:
                raise NodeError(message["error"])
            if message.get("event") == event:
                return message

    def close(self) -> None:
        """Closes the connection to the supervisor."""
        self.channel.close()


def executor_pid() -> int:
    """The process id of the executor's JVM; outside of Spark, of this process's parent.

    Spark's worker is a child of the JVM, or of a Python daemon that is a child of the JVM.
    """
    pid = os.getppid()
    while pid > 1:
        name, parent = _name_and_parent(pid)
        if name == "java":
            return pid
        if not name.startswith("python"):
            break
        pid = parent
    return os.getppid()


def _name_and_parent(pid: int) -> tuple[str, int]:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return "", 0
    head, _, tail = text.rpartition(")")
    return head.partition("(")[2], int(tail.split()[1])
