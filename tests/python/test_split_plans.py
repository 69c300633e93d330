"""Nodes read splits of remote files; the driver assigns the splits close to their blocks."""

import os
import queue
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from table_files import ROWS, TABLE, WRITERS, write_parquet, write_records

from hearth import HearthError
from hearth.cluster import roles
from hearth.cluster.driver import split_plans
from hearth.cluster.driver.split_plans import SplitPlans
from hearth.cluster.node.context import NodeContext
from hearth.cluster.node.split_requests import SplitRequests
from hearth.cluster.roles import fed_nodes
from hearth.files.stored_files import Block
from hearth.sources import named_formats


def remote(folder):
    """The folder's URI for fsspec, which makes it a remote file system."""
    return f"local://{folder}"


class Cluster:
    """A driver's thread and its nodes, in this process; blocks get the fake `hosts`."""

    def __init__(self, monkeypatch, counts, hosts=None):
        real = named_formats.list_files

        def listed(uri, session):
            files = real(uri, session)
            place = hosts or (lambda _: [])
            return [replace(f, blocks=(Block(0, f.size, frozenset(place(f.uri))),)) for f in files]

        monkeypatch.setattr(named_formats, "list_files", listed)
        self.files = queue.SimpleQueue()
        self.watch = self
        names = [role for role, count in counts.items() for _ in range(count)]
        self.nodes = [
            {"executor_id": i, "job_name": role, "host": f"10.0.0.{i}", "host_name": f"h{i}"}
            | {"port": 1}
            for i, role in enumerate(names)
        ]
        self.requests = [
            SplitRequests(lambda e, i=i: self.files.put((i, e))) for i in range(len(names))
        ]
        self.plans = SplitPlans(object())
        self.thread = self.plans.serve(self, self.nodes)

    def broadcast(self, answer):
        self.requests[answer["to"]].answer(answer)

    def contexts(self):
        spec = roles.cluster_spec(self.nodes)
        seen = {}
        for i, node in enumerate(self.nodes):
            role = node["job_name"]
            seen[role] = seen.get(role, -1) + 1
            context = NodeContext(i, role, seen[role], spec, "file://", ".")
            context.mgr = type("Manager", (), {"files": self.requests[i]})
            yield context

    def end(self):
        self.files.put(None)
        self.thread.join(60)
        assert not self.thread.is_alive()


@pytest.mark.parametrize("write", WRITERS)
def test_the_nodes_read_each_row_once_per_epoch(write, tmp_path, monkeypatch):
    write(tmp_path)
    cluster = Cluster(monkeypatch, {"chief": 1, "ps": 1, "worker": 2})
    seen, readers = [], 0
    for node in cluster.contexts():
        if node.role == "ps":
            with pytest.raises(HearthError, match="takes no rows"):
                node.get_file_feed(remote(tmp_path))
            continue
        feed = node.get_file_feed(remote(tmp_path), ["id", "x"], epochs=2)
        mine = []
        while not feed.should_stop():
            mine += feed.next_batch(64)
        assert all(row[1][0] == row[0] for row in mine)
        readers += bool(mine)
        seen += [row[0] for row in mine]
    assert sorted(seen) == sorted([*range(ROWS)] * 2)
    assert readers == 3
    cluster.end()


def test_local_and_remote_bytes_are_counted(tmp_path, monkeypatch):
    write_records(tmp_path)
    hosts = {"part-r-00000": ["h0"], "part-r-00001": ["10.0.0.1"]}
    cluster = Cluster(monkeypatch, {"worker": 2}, lambda uri: hosts.get(uri[-12:], ["other"]))
    for node in cluster.contexts():
        feed = node.get_file_feed(remote(tmp_path))
        while not feed.should_stop():
            feed.next_batch(100)
    cluster.end()
    sizes = {file.name: file.stat().st_size for file in tmp_path.glob("part*")}
    local = sizes["part-r-00000"] + sizes["part-r-00001"]
    assert (cluster.plans.local, cluster.plans.remote) == (local, sum(sizes.values()) - local)


def test_the_files_are_those_of_the_first_listing(tmp_path, monkeypatch):
    write_parquet(tmp_path)
    cluster = Cluster(monkeypatch, {"worker": 1})
    (node,) = cluster.contexts()
    node.get_file_feed(remote(tmp_path))
    pq.write_table(TABLE, tmp_path / "part-9.parquet")
    feed = node.get_file_feed(remote(tmp_path), ["id"])
    assert sum(len(feed.next_batch(64)) for _ in range(20)) == ROWS
    first = tmp_path / "part-0.parquet"
    content, written = first.read_bytes(), first.stat().st_mtime
    pq.write_table(TABLE, first)
    with pytest.raises(ValueError, match=r"part-0.parquet has \d+ bytes instead of \d+"):
        node.get_file_feed(remote(tmp_path)).next_batch(1)
    first.write_bytes(content)
    os.utime(first, (written - 5, written - 5))
    with pytest.raises(ValueError, match=r"part-0.parquet was modified .* reads the files"):
        node.get_file_feed(remote(tmp_path)).next_batch(1)
    first.unlink()
    with pytest.raises(ValueError, match=r"part-0.parquet is missing"):
        node.get_file_feed(remote(tmp_path)).next_batch(1)
    with pytest.raises(HearthError, match="/nowhere"):
        node.get_file_feed("local:///nowhere")
    with pytest.raises(ValueError, match="column 'z' is not in"):
        node.get_file_feed(remote(tmp_path), ["z"])
    cluster.end()


def test_a_restart_shares_the_same_files_over_the_new_hosts(tmp_path, monkeypatch):
    write_parquet(tmp_path)
    cluster = Cluster(monkeypatch, {"worker": 1}, lambda uri: ["h7"])
    (node,) = cluster.contexts()
    node.get_file_feed(remote(tmp_path))
    cluster.end()
    pq.write_table(TABLE, tmp_path / "part-9.parquet")
    cluster.nodes[0]["host_name"] = "h7"
    cluster.thread = cluster.plans.serve(cluster, cluster.nodes)
    feed = node.get_file_feed(remote(tmp_path), ["id"])
    assert sum(len(feed.next_batch(64)) for _ in range(20)) == ROWS
    cluster.end()
    assert cluster.plans.local > 0
    assert cluster.plans.remote == 0


def test_waiting_threads_get_the_clusters_failure():
    requests = SplitRequests(lambda event: requests.fail("node 1 was lost"))
    with pytest.raises(HearthError, match="node 1 was lost"):
        requests.ask("hdfs://a/b")
    with pytest.raises(HearthError, match="node 1 was lost"):
        requests.ask("hdfs://a/b")


def test_nodes_are_in_the_order_of_their_shares():
    nodes = [
        {"executor_id": 2, "job_name": "worker", "host": "c", "port": 1},
        {"executor_id": 0, "job_name": "ps", "host": "a", "port": 1},
        {"executor_id": 3, "job_name": "chief", "host": "d", "port": 1},
        {"executor_id": 1, "job_name": "worker", "host": "b", "port": 1},
    ]
    assert [node["executor_id"] for node in fed_nodes(nodes)] == [1, 2, 3]


def test_a_share_too_large_for_a_message_is_refused(tmp_path, monkeypatch):
    write_parquet(tmp_path)
    monkeypatch.setattr(split_plans, "_LARGEST_SHARE", 100)
    cluster = Cluster(monkeypatch, {"worker": 1})
    (node,) = cluster.contexts()
    with pytest.raises(
        HearthError, match=r"has 2 files for one node, which exceeds .*use more nodes"
    ):
        node.get_file_feed(remote(tmp_path))
    cluster.end()


def test_files_of_several_formats_are_refused(tmp_path):
    write_parquet(tmp_path)
    write_records(tmp_path)
    (node,) = [NodeContext(0, "worker", 0, {"worker": ["a:1"]}, "file://", ".")]
    with pytest.raises(ValueError, match="files of several formats"):
        node.get_file_feed(str(tmp_path))
