"""Processes that are ranks of hearth.tensorflow's group; the rendezvous uses files, not Spark."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from rank_programs import RankPrograms

START = """
import json, os, sys, time
from pathlib import Path
import numpy as np
import tensorflow as tf
import hearth.tensorflow as hvt
from hearth.ranks.place import Place
from hearth.ranks.group import Rendezvous

rank, world, folder, shared, case, seconds = json.loads(sys.argv[1])
tf.config.threading.set_intra_op_parallelism_threads(1)
os.environ["HEARTH_TRANSPORT"] = "shm" if shared else "tcp"

def rendezvous(name):
    path = Path(folder, name.replace("/", "_"))
    def publish(text):
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").rename(path)
    def read():
        while not path.exists():
            time.sleep(0.01)
        return path.read_text()
    return Rendezvous(publish, read, lambda: None, key="0123")

def say(value):
    print(json.dumps(value), flush=True)

def equal(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape and np.array_equal(found, expected), (found, expected)

hvt.init(Place(rank, world, rendezvous), seconds)
"""


class Ranks(RankPrograms):
    """Ranks of one group; the rendezvous uses files in `folder`."""

    def __init__(self, folder, program, *, world=2, shared=True, case="", seconds=120):
        super().__init__("tensorflow")
        for rank in range(world):
            given = [rank, world, str(folder), shared, case, seconds]
            self.start(START + program, given, {"TF_CPP_MIN_LOG_LEVEL": "2"})


@pytest.fixture
def tensorflow_ranks() -> Iterator[list[Ranks]]:
    """A list; ranks in it are ended after the test."""
    started: list[Ranks] = []
    yield started
    for each in started:
        each.end()


@contextmanager
def kept_ports(count):
    """Reserves ports while the context is open; servers with SO_REUSEADDR may listen on them."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind(("127.0.0.1", 0))
        yield [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
