"""Owns one `hearth trainer` process: starts it, sends it a job, reads its events, ends it."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from hearth import native
from hearth.errors import invalid
from hearth.native.failure import Failure, TaskError
from hearth.spark.task_resources import task_gpus

# Time for a trainer to exit after it has sent "done" or lost its control channel; normally it exits
# at once.
_EXIT_TIMEOUT_S = 10.0

Event = dict[str, Any]


class RankError(TaskError):
    """A rank failed; the text is one line that names the rank, its host and the reason."""


class TrainerProcess:
    """A trainer process, started as a child, and its control channel, until close().

    Create it in a thread that outlives the child: the kernel kills the child when the thread that
    started it ends. The job contains the token, so it is sent through the channel, never on the
    command line.
    """

    def __init__(
        self,
        job: dict[str, Any],
        inherited_fds: Iterable[int],
        on_rows: Callable[[Event], None] | None = None,
        environment: Mapping[str, str] | None = None,
    ):
        """Starts the program and sends `job`.

        `on_rows` is called in another thread with each request for the rows of a stream.
        `environment`: variables of the child, unless this process sets them.

        Raises:
            RankError: the program cannot be started.
        """
        self._rank, self._host = job["rank"], job["host"]
        self._on_rows = on_rows
        self._ended = threading.Event()
        self._done: Event | None = None
        self._error: Event | None = None
        self._control, child_end = socket.socketpair()
        with child_end:
            net = job.get("net", {}).get("text", "")
            fds = (child_end.fileno(), *inherited_fds)
            self._process = self._spawn(net, fds, environment or {})
        self._listener = threading.Thread(target=self._listen, name="hearth-events", daemon=True)
        self._listener.start()
        with suppress(OSError):  # the trainer may have died already; wait() reports why
            self._control.sendall(json.dumps(job).encode() + b"\n")

    def _spawn(
        self, net: str, fds: Sequence[int], defaults: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        try:
            command, environment = _program_for(net)
            return subprocess.Popen(
                [*command, "trainer", "--control-fd", str(fds[0])],
                stdin=subprocess.DEVNULL,
                pass_fds=fds,
                env={**defaults, **environment},
            )
        except (OSError, ImportError) as error:
            self._control.close()
            raise RankError(self._failed(f"cannot start its trainer: {error}")) from error

    @property
    def pid(self) -> int:
        """The trainer's process id."""
        return self._process.pid

    def wait(self) -> Event:
        """Blocks until the trainer is done and returns its "done" event.

        Raises:
            RankError: with the trainer's own message, or how the process ended.
        """
        self._ended.wait()
        if self._done is None:
            raise RankError(self.failure())
        return self._done

    def failure(self) -> Failure:
        """Why the trainer has failed. Waits briefly for its end, or for the error that it
        reports."""
        self._ended.wait(_EXIT_TIMEOUT_S)
        if self._error is None:
            return self._how_it_ended()
        message = " ".join(str(self._error.get("message", "no reason given")).split())
        if self._error.get("by_peer"):  # another rank failed first
            return Failure.of(self._error, text=message)
        if self._error.get("code") == "resource_exhausted":
            message += _address_limit()
        return self._failed(message, **self._error)

    def _failed(self, reason: str, **known: Any) -> Failure:
        """A failure of this rank."""
        return Failure.of_rank(self._rank, self._host, reason, known)

    def _how_it_ended(self) -> Failure:
        try:
            status = self._process.wait(_EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return self._failed("its trainer process does not answer", code="deadline_exceeded")
        if status < 0:
            name = signal.Signals(-status).name
            how = f"its trainer process was killed by {name}{_address_limit()}"
            return self._failed(how, code="unavailable", lost=True)
        return self._failed(
            f"its trainer process ended with status {status} without reporting a reason; its log "
            f"is in the executor's stderr{_address_limit()}"
        )

    def _listen(self) -> None:
        # A killed child resets the channel or leaves a truncated line.
        with self._control.makefile("rb") as lines, suppress(OSError, ValueError):
            for line in lines:
                self._handle(json.loads(line))
        self._ended.set()

    def _handle(self, event: Event) -> None:
        kind = event.get("event")
        if kind == "rows" and self._on_rows is not None:
            self._on_rows(event)
        if kind == "error":
            self._error = self._error or event
        if kind == "done":
            self._done = event
        if kind in ("done", "error"):
            self._ended.set()

    def close(self) -> None:
        """Ends the child if it still runs, and waits for it."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(_EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        self._control.close()


def _address_limit() -> str:
    """A hint for errors that may be caused by a lack of memory, if the address space is limited."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return ""
    return (
        f" (its address space is limited to {limit >> 20} MB, by spark.executor.pyspark.memory if "
        "that is set: unset it, and raise spark.executor.memoryOverhead instead)"
    )


def _program_for(net: str) -> tuple[list[str], dict[str, str]]:
    """The command that starts a net's trainer, given the prototxt, and the command's environment.

    Python layers need an interpreter with this process's search path. The search for "Python" may
    also match a net without Python layers, which is harmless.
    """
    environment = native.environment()
    if gpus := task_gpus():
        environment = environment | {"CUDA_VISIBLE_DEVICES": ",".join(gpus)}
    if '"Python"' in net or "'Python'" in net:
        path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return [sys.executable, "-m", "hearth.caffe.program"], environment | path
    return [str(native.program())], environment


def compute_threads(task_cpus: int) -> int:
    """Number of compute threads of a trainer: OMP_NUM_THREADS if set, else the task's cores.

    Raises:
        ValueError: OMP_NUM_THREADS is neither a number nor a list that begins with one.
    """
    text = os.environ.get("OMP_NUM_THREADS", "")
    first = text.partition(",")[0].strip()
    if first and not first.isdecimal():
        raise invalid(f"OMP_NUM_THREADS={text} in the environment: it must be a number of threads")
    return max(1, int(first or task_cpus or 1))


def stream_of(ring: Any) -> dict[str, int]:
    """A ring's entry in the job: the descriptors that the child inherits."""
    ring_fd, signal_fd = ring.fds()
    return {"ring_fd": ring_fd, "signal_fd": signal_fd}
