"""The program of a node's reader process: reads splits of a source into the node's partition
files."""

from __future__ import annotations

import base64
import ctypes
import os
import pickle
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from hearth.cluster.channel import Channel, Message
from hearth.cluster.task.dataset_task import DatasetSpec, deliver

_PR_SET_PDEATHSIG = 1


def read_splits(source: Any, job: Message, splits: Sequence[int]) -> None:
    """Delivers splits of a source to their node. Raises the source's errors and those of
    deliver()."""
    node = job["node"]
    every = source.splits()
    spec = DatasetSpec(job["name"], job["token"], (node,), (0,) * len(every))
    for number in splits:
        deliver(spec, number, os.getpid(), source.read(every[number]))


def main() -> None:
    """Runs one reader; the argument is the descriptor of its channel to the supervisor."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    job, _ = channel.receive()
    # Trusted: the supervisor received the pickle in Spark's closure.
    source = pickle.loads(base64.b64decode(channel.receive_data(job["bytes"])))
    try:
        read_splits(source, job, job["splits"])
        answer: Message = {"op": "done"}
    except Exception as error:
        answer = {"error": f"dataset {job['name']!r} cannot be read: {error}"}
    with suppress(OSError):
        channel.send(answer)


if __name__ == "__main__":
    main()
