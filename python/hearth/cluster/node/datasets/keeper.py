"""Holds the complete partition files of an ended supervisor for the cluster's next start.

A supervisor that stops because the cluster restarts remains as a keeper. Supervisors that start on
its host find it by its socket's name, prove that they belong to the same cluster, and take over the
files.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterable
from contextlib import closing, suppress

from hearth.cluster.acceptor import Acceptor
from hearth.cluster.channel import Channel, handshake_terms
from hearth.cluster.node.datasets.files import CompleteFile

_SERVICE = "datasets"
# How long to keep files for the cluster's next start; executors may take minutes to start.
_KEEP_S = 3600.0
# How long a keeper remains after a supervisor has taken the files, because other supervisors on the
# host may need them too.
_LINGER_S = 30.0
_CONNECT_S = 5.0
_LISTENERS = "/proc/net/unix"


def keep(files: Iterable[CompleteFile], cluster: str, key: str, executor_pid: int) -> None:
    """Offers the files to supervisors of this host; returns when they are no longer needed.

    Args:
        files: complete files.
        cluster: the cluster's id.
        key: 64 hex digits shared by all starts of the cluster.
        executor_pid: the process whose end also ends the keeper.
    """
    kept = list(files)
    if not kept:
        return
    taken = threading.Event()

    def serve(channel: Channel) -> None:
        for file in kept:
            channel.send(file.message(), fds=(file.fd,))
        channel.send({"op": "end"})
        taken.set()

    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"\0{_prefix(cluster)}{os.getpid()}")
    acceptor = Acceptor(handshake_terms(key, _SERVICE), listener, serve, "kept datasets")
    try:
        _wait(executor_pid, taken)
    finally:
        acceptor.close()


def take_over(cluster: str, key: str) -> list[CompleteFile]:
    """The files that keepers of this cluster hold on this host; the caller owns the descriptors."""
    found: list[CompleteFile] = []
    for name in _keepers(cluster):
        # If a keeper ends in the meantime, its rows are delivered again.
        with suppress(OSError, EOFError, ValueError, KeyError):
            found += _take(name, key)
    return found


def _take(name: str, key: str) -> list[CompleteFile]:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(_CONNECT_S)
    sock.connect("\0" + name)
    files: list[CompleteFile] = []
    with closing(Channel(sock, "a keeper of datasets")) as channel:
        channel.offer_handshake(handshake_terms(key, _SERVICE))
        while True:
            message, fds = channel.receive(_CONNECT_S, descriptors=1)
            if message["op"] == "end":
                return files
            files.append(CompleteFile.of(message, fds[0]))


def _prefix(cluster: str) -> str:
    return f"hearth-kept-{cluster}-"


def _keepers(cluster: str) -> list[str]:
    """Names of the sockets in Linux's abstract namespace on which keepers listen."""
    with open(_LISTENERS, encoding="utf-8", errors="replace") as file:
        names = {line.split()[-1] for line in file}
    prefix = "@" + _prefix(cluster)
    return sorted(name[1:] for name in names if name.startswith(prefix))


def _wait(executor_pid: int, taken: threading.Event) -> None:
    """Waits until the files are taken or _KEEP_S seconds have passed, then another _LINGER_S
    seconds. Returns early if the executor ends."""
    try:
        executor = os.pidfd_open(executor_pid)
    except OSError:  # the executor has ended
        return
    ended = threading.Event()

    def watch() -> None:
        poller = select.poll()
        poller.register(executor, select.POLLIN)
        poller.poll()
        ended.set()
        taken.set()

    threading.Thread(target=watch, name="hearth-executor", daemon=True).start()
    taken.wait(_KEEP_S)
    ended.wait(_LINGER_S)
