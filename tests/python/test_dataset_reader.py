"""The process that reads a node's files: how its early end is reported."""

from __future__ import annotations

import base64
import os
import pickle
import queue
import signal

from hearth.cluster.node.datasets.reader import Reader


class Source:
    """A source whose splits() kills the process or raises."""

    def __init__(self, kill=0):
        self.kill = kill

    def splits(self):
        if self.kill:
            os.kill(os.getpid(), self.kill)
        raise ValueError("part-7.parquet is no Parquet file")


def reported(source, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__))
    reasons = queue.SimpleQueue()
    job = {"name": "train", "splits": [0], "node": {}, "token": ""}
    packed = base64.b64encode(pickle.dumps(source)).decode()
    reader = Reader(job, packed, lambda *reason: reasons.put(reason))
    try:
        return reasons.get(timeout=60)
    finally:
        reader.close()


def test_a_killed_reader_counts_as_a_loss(monkeypatch):
    reason, code = reported(Source(signal.SIGKILL), monkeypatch)
    assert "the process that reads dataset 'train' was killed by SIGKILL" in reason
    assert code == "unavailable"


def test_unreadable_rows_do_not_count_as_a_loss(monkeypatch):
    reason, code = reported(Source(), monkeypatch)
    assert reason == "dataset 'train' cannot be read: part-7.parquet is no Parquet file"
    assert code == "internal"
