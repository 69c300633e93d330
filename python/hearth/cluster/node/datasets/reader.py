"""Runs the process that reads a node's splits of a source.

A separate process neither blocks the node's program nor ends with the program.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable

from hearth.cluster.channel import Channel, Message

OnError = Callable[[str, str], None]


class Reader:
    """A reader process, owned by this object."""

    def __init__(self, job: Message, source: str, on_error: OnError):
        """Starts the process.

        Args:
            job: the dataset's name, the splits, the node and its token.
            source: the packed source from the node's start job.
            on_error: called in a thread with the reason and code of a failure.
        """
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "hearth.cluster.task.dataset_reader", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._channel.send({**job, "bytes": len(source)}, data=source.encode())
        threading.Thread(target=self._watch, args=(job["name"], on_error), daemon=True).start()

    def _watch(self, name: str, on_error: OnError) -> None:
        try:
            answer, _ = self._channel.receive()
            if "error" in answer:
                on_error(answer["error"], "internal")
        except (EOFError, OSError):
            status = self._process.wait()
            if status == -signal.SIGKILL:  # the code "unavailable" allows the cluster to restart
                on_error(
                    f"the process that reads dataset {name!r} was killed by SIGKILL (as the kernel "
                    "does when memory runs out)",
                    "unavailable",
                )
            elif status != -signal.SIGTERM:
                text = f"the process that reads dataset {name!r} ended with status {status}"
                on_error(f"{text}; see the executor's stderr", "internal")

    def close(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.wait()
        self._channel.close()
