"""Worker processes that call a program's map function on a loader's batches."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from hearth.data.shared_values import load, store
from hearth.errors import HearthError, invalid

_END_S = 2.0


class MapProcesses:
    """A loader's worker processes, which end with this object or this process. Thread-safe."""

    def __init__(self, function: Callable[[Any, Any], Any], count: int, dataset: str):
        """Starts the processes without waiting for them.

        Args:
            function: function(batch, seeds); pickled by value if the processes cannot import it.
            count: number of processes.
            dataset: the dataset's name, for errors.

        Raises:
            ValueError: the function cannot be pickled.
        """
        from pyspark import cloudpickle

        try:
            pickled = cloudpickle.dumps(function)
        except Exception as error:
            raise invalid(
                f"the map of dataset {dataset!r} cannot be sent to processes, as an object that it "
                f"uses cannot be pickled: {error}; use map_in='threads', or create it in the map"
            ) from error
        self._dataset = dataset
        processes = [_Process(number, pickled) for number in range(count)]
        self._idle: SimpleQueue[_Process] = SimpleQueue()
        for process in processes:
            self._idle.put(process)
        weakref.finalize(self, _end, processes, os.getpid())

    def call(self, batch: Any, seeds: Any) -> Any:
        """Calls function(batch, seeds) in an idle process; blocks until one is idle.

        Raises:
            HearthError: the process was killed or has ended.
            Exception: the function's exception, with the process's traceback as a note.
        """
        process = self._idle.get()
        try:
            return process.call(batch, seeds)
        except EOFError:
            raise HearthError(
                f"worker process {process.number} of dataset {self._dataset!r} (process id "
                f"{process.pid}), which runs its map, {process.how_it_ended()}"
            ) from None
        finally:
            self._idle.put(process)


class _Process:
    def __init__(self, number: int, function: bytes):
        from hearth.native._core import MessageChannel

        self.number = number
        self._function = function
        ours, theirs = socket.socketpair()
        self._channel = MessageChannel(ours.detach(), f"worker process {number}")
        path = os.pathsep.join(filter(None, sys.path))
        arguments = str(theirs.fileno()), str(os.getpid())
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "hearth.data.map_process", *arguments],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # Each process computes in one thread, like a DataLoader's: the processes share the
                # cores.
                env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            )
        self.pid = self._process.pid

    def call(self, batch: Any, seeds: Any) -> Any:
        """Calls the function. Raises its exceptions, and EOFError if the process has ended."""
        fd, sizes = store((batch, seeds))
        try:
            if self._function:
                self._channel.send({"bytes": len(self._function)}, [], self._function)
                self._function = b""
            self._channel.send({"sizes": sizes}, [fd], b"")
        except OSError:
            raise EOFError from None
        finally:
            os.close(fd)
        failed, value = self._receive()
        if failed:
            raise self._error(*value)
        return value

    def _receive(self) -> tuple[bool, Any]:
        try:
            received = self._channel.receive(None)
        except OSError:
            received = None
        if received is None:
            raise EOFError
        message, (fd,) = received
        return message["failed"], load(fd, message["sizes"])

    def _error(self, pickled: bytes, text: str) -> BaseException:
        error = pickle.loads(pickled)
        error.add_note(f"raised in worker process {self.number} (process id {self.pid}):\n{text}")
        return error

    def how_it_ended(self) -> str:
        """Describes the exit status, for an error message."""
        status = self._process.wait()
        if status == -signal.SIGKILL:
            return "was killed by SIGKILL (as the kernel does when memory runs out)"
        if status < 0:
            return f"was killed by {signal.Signals(-status).name}"
        return f"ended with status {status}: see its output above"

    def end(self) -> None:
        self._channel.end()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:  # the process is blocked in native code
            self._process.kill()
            self._process.wait()


def _end(processes: Sequence[_Process], owner: int) -> None:
    if os.getpid() != owner:  # a forked child of the program
        return
    for process in processes:
        with suppress(OSError):
            process.end()
