"""Processes that are ranks of hearth.horovod, with a rendezvous by files; without Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rank_programs import RankPrograms

START = """
import itertools, json, os, sys, time
from pathlib import Path
import numpy as np
from hearth.ranks import place
from hearth.ranks.group import Rendezvous

rank, world, folder, case = json.loads(sys.argv[1])

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

place.offer(place.Place(rank, world, rendezvous))

def say(value):
    print(json.dumps(value), flush=True)

def raised(kind, function, *args, **options):
    try:
        function(*args, **options)
    except kind as error:
        return str(error)
    raise AssertionError(f"{function} raised no {kind}")

def equal(found, expected, what=""):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    assert np.array_equal(found, expected), (what, found, expected)
"""


class Ranks(RankPrograms):
    """Ranks of one group that have imported `package`; the rendezvous uses files in `folder`."""

    def __init__(self, package, folder, program, *, world=2, case="", start=""):
        super().__init__(package)
        for rank in range(world):
            given = [rank, world, str(folder), case]
            self.start(START + start + program, given, {"TF_CPP_MIN_LOG_LEVEL": "2"})


@pytest.fixture
def horovod_ranks() -> Iterator[list[Ranks]]:
    """A list; ranks in it are ended after the test."""
    started: list[Ranks] = []
    yield started
    for each in started:
        each.end()
