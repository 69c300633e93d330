"""Starts Python programs by forking a process that has already imported their packages.

Importing takes two seconds of processor time for PyTorch and five for TensorFlow, and tests of
ranks start hundreds of programs.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

# A server: for each request it forks a child, which runs the request's code as its main module. The
# server exits when its socket is closed.
_PROGRAM = """
import importlib, json, os, signal, socket, sys
requests = socket.socket(fileno=int(sys.argv[1]))
importlib.import_module(sys.argv[2])
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    request, streams, _, _ = socket.recv_fds(requests, 1 << 18, 2)
    if not request:
        sys.exit()
    if (pid := os.fork()) == 0:
        break
    for stream in streams:
        os.close(stream)
    requests.send(str(pid).encode())
requests.close()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
for number, stream in enumerate(streams, 1):
    os.dup2(stream, number)
    os.close(stream)
request = json.loads(request)
os.environ.clear()
os.environ.update(request["environment"])
sys.argv = ["-c", request["argument"]]
if "numpy" in sys.modules:
    sys.modules["numpy"].random.seed()
exec(request["code"])
"""


class Fork:
    """A running program; call end() when it is no longer needed."""

    def __init__(self, pid: int, stdout: int, stderr: int):
        self.pid = pid
        self.stdout, self.stderr = (os.fdopen(s, errors="replace") for s in (stdout, stderr))

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kills the program, and waits until it has ended."""
        self.kill()
        for stream in (self.stdout, self.stderr):
            stream.read()
            stream.close()


class Forks:
    """A process that has imported `package`; end() or this process's exit ends it."""

    def __init__(self, package: str):
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), package]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        atexit.register(self.end)

    def start(self, code: str, argument: str, environment: Mapping[str, str]) -> Fork:
        """Runs `code` in a fork, with `argument` as its first argument."""
        (stdout, out), (stderr, err) = os.pipe(), os.pipe()
        request = {"code": code, "argument": argument, "environment": dict(environment)}
        socket.send_fds(self._requests, [json.dumps(request).encode()], [out, err])
        os.close(out)
        os.close(err)
        pid = self._requests.recv(32)
        assert pid, "the process that was to be forked has ended; see its own error"
        return Fork(int(pid), stdout, stderr)

    def end(self) -> None:
        self._requests.close()
        self._process.wait()


@cache
def forks_with(package: str) -> Forks:
    """Returns this process's instance for the package, created by the first call."""
    return Forks(package)
