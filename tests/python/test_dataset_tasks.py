"""Errors in a task that delivers rows to a node that cannot accept them."""

from __future__ import annotations

import resource
import socket

import pyarrow as pa
import pytest

from hearth.cluster.channel import Channel, feed_terms
from hearth.cluster.errors import NodeError
from hearth.cluster.node.datasets import files
from hearth.cluster.node.datasets.program import NodeDatasets
from hearth.cluster.node.feed_listener import FeedListener
from hearth.cluster.task.dataset_task import DatasetSpec, deliver

TOKEN = "ab" * 32


def batches(count, rows=1000):
    for _ in range(count):
        yield pa.record_batch({"x": ["y" * 1000] * rows})


@pytest.fixture(params=["local", "remote"])
def spec(request):
    """The spec for a delivery to a local node, or to one that appears to be remote."""
    pairs = [socket.socketpair() for _ in range(2)]
    kept = files.PartitionFiles(Channel(pairs[0][0]), lambda event: None)
    listener = FeedListener(
        feed_terms(TOKEN, 0), Channel(pairs[1][0]), print, "127.0.0.1", (0,), kept
    )
    node = {"job_name": "worker", "task_index": 0, "executor_id": 0, "host": "127.0.0.1"}
    host = socket.gethostname() if request.param == "local" else "other-host"
    node |= {"host_name": host, "addr": listener.name, "feed_port": listener.port}
    yield DatasetSpec("train", TOKEN, (node,), (0,) * 10)
    listener.close()
    for pair in pairs:
        pair[1].close()


def test_a_full_disk_is_reported(spec):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10 << 20, limits[1]))
    try:
        with pytest.raises((OSError, NodeError), match="cannot append rows to a partition file"):
            deliver(spec, 0, 1, batches(40))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert deliver(spec, 0, 2, batches(2))[0] == 2000


def test_a_missing_folder_is_named(spec, monkeypatch, tmp_path):
    monkeypatch.setattr(files, "spill_folder", lambda turn: str(tmp_path / "gone"))
    with pytest.raises(NodeError, match=r"worker:0 on host .* cannot take rows: .*gone"):
        deliver(spec, 0, 1, batches(1))


def test_errors_of_the_rows_are_not_taken_for_those_of_the_node(spec):
    def broken():
        yield from batches(1)
        raise FileNotFoundError("part-7.parquet is gone")

    with pytest.raises(FileNotFoundError, match=r"part-7\.parquet is gone"):
        deliver(spec, 0, 1, broken())
    assert deliver(spec, 0, 2, batches(2))[0] == 2000


def test_a_program_may_have_a_file_for_each_of_many_partitions():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        plan = {"op": "dataset_plan", "dataset": "train", "rank": 0, "world": 1, "identity": ""}
        NodeDatasets(["train"]).handle({**plan, "owners": [0] * 5000}, [])
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, 65536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
